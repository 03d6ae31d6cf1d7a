//! The closed sets among the parameters of the linear models, besides the optimizers and the schedules.

algo::choices! {
    /// The Hessian with which full-batch optimizers start.
    pub(super) enum StartHessian {
        /// Curvature of the loss in each column.
        Diagonal = "diagonal";
        /// One number for all columns.
        Identity = "identity";
    }

    /// The scaling of columns that the user asks for. The format of the data decides whether they are centered too: see
    /// [`Standardize`](super::Standardize).
    pub enum ColumnScaling {
        /// By the standard deviation.
        Deviation = "true";
        None = "false";
        /// By the root mean square of the entries.
        Entries = "entries";
        /// By the inverse document frequency.
        Idf = "idf";
    }

    /// The losses of `svm`.
    pub(super) enum MarginLoss {
        SquaredHinge = "squared_hinge";
        Hinge = "hinge";
    }
}
