//! The settings of recommenders.

use super::interactions::Duplicates;
use algo::param::common::{NOT_NEGATIVE as LIMIT, POSITIVE, SHARE};
use algo::param::{Bounds, ParamKind, words};

/// From 0 to 1.
const SHARE_OR_ONE: ParamKind = ParamKind::Real { low: 0.0, high: 1.0, open: Bounds::Closed };

/// At least 0, or from the data.
const AUTO: ParamKind = ParamKind::AutoReal { low: 0.0, high: f64::INFINITY, open: Bounds::Closed };

algo::choices! {
    /// How the equations of a row are solved.
    pub(super) enum Solver {
        ConjugateGradients = "cg": "a few steps from the last solution", reads STEPS;
        Cholesky = "cholesky": "exactly";
    }

    /// What choices are learned with.
    pub(super) enum ChoiceLoss {
        Ials = "ials": "a weight for all pairs, penalties by counts (Rendle et al., 2021)", reads UNOBSERVED, NU;
        Confidence = "confidence": "confidence 1 + alpha x strength, one penalty (Hu, Koren, Volinsky, 2008)", reads ALPHA;
    }
}

algo::params! {
    pub(super) const ALS = [
        /// Numbers in the row of a user or an item
        pub(super) FACTORS = "factors": ParamKind::Integer { low: 1, high: 4096 }, "40", "factors";
        /// Iterations: users, then items
        pub(super) ITERATIONS = "iterations": ParamKind::Integer { low: 1, high: 100_000 }, "15", "iterations";
        /// Penalty on the squares of all numbers of a row, for each of its ratings
        pub(super) LAMBDA = "lambda": LIMIT, "0.1";
        /// How the equations of a row are solved
        pub(super) SOLVER = "solver": ParamKind::Choice(words::<Solver>), "cg";
        /// Steps of conjugate gradients
        pub(super) STEPS = "cg_steps": ParamKind::Integer { low: 1, high: 1000 }, "3", "steps";
        /// What counts where a user has rated an item several times
        pub(super) DUPLICATES = "duplicates": ParamKind::Choice(words::<Duplicates>), "last";
        /// Weight of implicit features: which items a user has rated, whatever the rating; 0: they are not used
        pub(super) IMPLICIT_WEIGHT = "implicit_weight": LIMIT, "0";
        /// Share of the ratings held out for validation
        pub(super) VALIDATION_SHARE = "validation_share": SHARE, "0";
    ];
}

algo::params! {
    pub(super) const IALS = [
        /// Numbers in the row of a user or an item
        pub(super) IALS_FACTORS = "factors": ParamKind::Integer { low: 1, high: 4096 }, "64", "factors";
        /// Iterations: users, then items
        pub(super) IALS_ITERATIONS = "iterations": ParamKind::Integer { low: 1, high: 100_000 }, "16", "iterations";
        /// What is minimized
        pub(super) LOSS = "loss": ParamKind::Choice(words::<ChoiceLoss>), "ials";
        /// Penalty on the squares of all numbers of a row; with ials times (its choices + unobserved x rows of the other side)^nu; auto: a 25th of the third root of the share of pairs that were chosen
        pub(super) IALS_LAMBDA = "lambda": AUTO, "auto";
        /// Weight of a pair whatever was chosen; a choice has the weight 1 more; auto: the root of the share of pairs that were chosen
        pub(super) UNOBSERVED = "unobserved": AUTO, "auto";
        /// Exponent of the penalty
        pub(super) NU = "nu": SHARE_OR_ONE, "1";
        /// Confidence of a choice of strength 1, beside that of no choice, which is 1
        pub(super) ALPHA = "alpha": LIMIT, "40";
        /// How the equations of a row are solved
        pub(super) IALS_SOLVER = "solver": ParamKind::Choice(words::<Solver>), "cg";
        /// Steps of conjugate gradients
        pub(super) IALS_STEPS = "cg_steps": ParamKind::Integer { low: 1, high: 1000 }, "3", "steps";
        /// What counts where a user has chosen an item several times
        pub(super) IALS_DUPLICATES = "duplicates": ParamKind::Choice(words::<Duplicates>), "sum";
        /// Share of the items of each user held out for validation
        pub(super) IALS_VALIDATION_SHARE = "validation_share": SHARE, "0";
    ];
}

algo::params! {
    pub(super) const MF = [
        /// Numbers in the row of a user or an item
        pub(super) MF_FACTORS = "factors": ParamKind::Integer { low: 1, high: 4096 }, "50", "factors";
        /// Passes over the ratings
        pub(super) EPOCHS = "epochs": ParamKind::Integer { low: 1, high: 100_000 }, "40", "passes";
        /// Step size of the first pass; it falls evenly to a tenth
        pub(super) RATE = "learning_rate": POSITIVE, "0.015";
        /// Penalty on the squares of the factors of a user and an item, for each of its ratings
        pub(super) MF_LAMBDA = "lambda": LIMIT, "0.1";
        /// The same of their biases
        pub(super) BIAS_LAMBDA = "bias_lambda": LIMIT, "0.01";
        /// Keep all factors at 0 or above
        pub(super) NONNEGATIVE = "nonnegative": ParamKind::Flag, "false";
        /// What counts where a user has rated an item several times
        pub(super) MF_DUPLICATES = "duplicates": ParamKind::Choice(words::<Duplicates>), "last";
        /// Share of the ratings held out for validation
        pub(super) MF_VALIDATION_SHARE = "validation_share": SHARE, "0";
    ];
}

algo::params! {
    pub(super) const BPR = [
        /// Numbers in the row of a user or an item
        pub(super) BPR_FACTORS = "factors": ParamKind::Integer { low: 1, high: 4096 }, "64", "factors";
        /// Passes over the choices
        pub(super) BPR_EPOCHS = "epochs": ParamKind::Integer { low: 1, high: 100_000 }, "50", "passes";
        /// Step size of the first pass; it falls evenly to a tenth
        pub(super) BPR_RATE = "learning_rate": POSITIVE, "0.05";
        /// Penalty on the squares of the factors of a user and two items, for each of its steps
        pub(super) BPR_LAMBDA = "lambda": LIMIT, "0.01";
        /// The same of the biases of items
        pub(super) BPR_BIAS_LAMBDA = "bias_lambda": LIMIT, "0.01";
        /// Items that the user does not have, drawn evenly for each choice in each pass
        pub(super) NEGATIVES = "negatives": ParamKind::Integer { low: 1, high: 1000 }, "1", "items";
        /// What counts where a user has chosen an item several times
        pub(super) BPR_DUPLICATES = "duplicates": ParamKind::Choice(words::<Duplicates>), "last";
        /// Share of the items of each user held out for validation
        pub(super) BPR_VALIDATION_SHARE = "validation_share": SHARE, "0";
    ];
}

algo::choices! {
    /// How similar two items are.
    pub(super) enum Similarity {
        Cosine = "cosine": "sum over users of the products of strengths / items of the user^user_exponent, / (length x length)^item_exponent", reads USER_EXPONENT, ITEM_EXPONENT;
        Cooccurrence = "cooccurrence": "users that have both";
        Jaccard = "jaccard": "users that have both / users that have one or both";
        Bm25 = "bm25": "product of Okapi BM25 weights", reads K1, B;
    }
}

algo::params! {
    pub(super) const ITEMKNN = [
        /// How similar two items are
        pub(super) SIMILARITY = "similarity": ParamKind::Choice(words::<Similarity>), "cosine";
        /// How much less users with many items count; 0 is the cosine of textbooks
        pub(super) USER_EXPONENT = "user_exponent": SHARE_OR_ONE, "1";
        /// How much less popular items count; 1 is the cosine of textbooks
        pub(super) ITEM_EXPONENT = "item_exponent": SHARE_OR_ONE, "0.5";
        /// Most neighbors of an item: those that are most similar
        pub(super) NEIGHBORS = "neighbors": ParamKind::Integer { low: 1, high: 1 << 20 }, "100", "items";
        /// How fast further strength of a choice counts less
        pub(super) K1 = "k1": POSITIVE, "1.2";
        /// How much less popular items count
        pub(super) B = "b": SHARE_OR_ONE, "0.75";
        /// What counts where a user has chosen an item several times
        pub(super) ITEMKNN_DUPLICATES = "duplicates": ParamKind::Choice(words::<Duplicates>), "sum";
        /// Share of the items of each user held out for validation
        pub(super) ITEMKNN_VALIDATION_SHARE = "validation_share": SHARE, "0";
    ];
}

algo::params! {
    pub(super) const EASE = [
        /// Penalty on the squares of the weights
        pub(super) EASE_LAMBDA = "lambda": POSITIVE, "200";
        /// Neighbors of an item that are kept: those with the largest weights, with or without sign
        pub(super) EASE_NEIGHBORS = "neighbors": ParamKind::Integer { low: 1, high: 1 << 20 }, "1000", "items";
        /// What counts where a user has chosen an item several times
        pub(super) EASE_DUPLICATES = "duplicates": ParamKind::Choice(words::<Duplicates>), "last";
        /// Share of the items of each user held out for validation
        pub(super) EASE_VALIDATION_SHARE = "validation_share": SHARE, "0";
    ];
}
