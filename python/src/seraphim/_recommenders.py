"""Recommenders: users, items, and what the users think of the items."""

from __future__ import annotations

from typing import Any, Sequence

from seraphim import _input, _native
from seraphim._estimators import Estimator
from seraphim._input import Attributes
from seraphim.errors import DataError, SettingError


class Recommender(Estimator):
    """An estimator of what users would choose."""

    kind = "recommender"

    def _training_input(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> _input.Input:
        if sample_weight is not None or groups is not None:
            raise SettingError(f"{type(self).__name__} takes no sample_weight and no groups: a rating counts as it is")
        if hasattr(X, "tocoo"):
            return _input.of_ratings(X)
        if not _input.is_files(X) and not _input.is_table(X):
            raise DataError(
                "X is a table with a user, an item and a rating in each row (pandas, polars, pyarrow), a scipy matrix of "
                "users x items, or files"
            )
        if isinstance(y, str):
            return self._with_label_column(X, y, Attributes())
        if y is not None:
            raise DataError("y is the name of the column of ratings; the ratings are in X")
        return _input.convert(X, Attributes())

    def _set_model(self, model: _native.TrainedModel) -> None:
        super()._set_model(model)
        self._recommender = model.recommender()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_recommender", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self.__sklearn_is_fitted__():
            self._recommender = self._model.recommender()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The checks of scikit-learn give arrays of features.
        tags._skip_test = True
        return tags

    def recommend(self, users: Sequence[Any], n: int = 10) -> list[list[tuple[str, float]]]:
        """The ``n`` best items of each user that it does not have, best first, with their scores.

        A user that the model does not know gets the most popular items.
        """
        self._fitted()
        return self._recommender.recommend([str(user) for user in users], n)

    def similar_items(self, items: Sequence[Any], n: int = 10) -> list[list[tuple[str, float]]]:
        """The ``n`` items that are most similar to each of these, best first, with their similarities."""
        self._fitted()
        return self._recommender.similar([str(item) for item in items], n)
