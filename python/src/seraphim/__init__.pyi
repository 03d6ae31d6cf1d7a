# Written by `python -m seraphim._stubs`.
import os
from typing import Any

from seraphim import _estimators, _recommenders
from seraphim._loops import Cluster as Cluster
from seraphim._loops import Matrix as Matrix
from seraphim._loops import Service as Service
from seraphim._loops import Session as Session
from seraphim._loops import SharedMatrix as SharedMatrix
from seraphim._loops import Task as Task
from seraphim._loops import connect as connect
from seraphim.errors import DataError as DataError
from seraphim.errors import InternalError as InternalError
from seraphim.errors import InterruptedRunError as InterruptedRunError
from seraphim.errors import ModelError as ModelError
from seraphim.errors import NotFittedError as NotFittedError
from seraphim.errors import SeraphimError as SeraphimError
from seraphim.errors import SeraphimWarning as SeraphimWarning
from seraphim.errors import SettingError as SettingError
from seraphim.errors import StorageError as StorageError

__version__: str

def load(path: str | os.PathLike[str]) -> _estimators.Estimator: ...

class FMClassifier(_estimators.ProbabilisticClassifier):
    def __init__(
        self,
        *,
        k: float | str = ...,
        loss: str | float | None = ...,
        optimizer: str | float | None = ...,
        learning_rate: str | float | None = ...,
        l1: float | str = ...,
        l2: float | str = ...,
        init_deviation: float | str = ...,
        admission: float | str = ...,
        linear_optimizer: str | float | None = ...,
        linear_learning_rate: str | float | None = ...,
        linear_l1: float | str = ...,
        linear_l2: float | str = ...,
        standardize: str | float | None = ...,
        normalize: str | float | None = ...,
        epochs: str | float | None = ...,
        batch_size: str | float | None = ...,
        shuffle: str | float | None = ...,
        early_stopping: float | str = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        positive_label: str | float | None = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    k: float | str
    loss: str | float | None
    optimizer: str | float | None
    learning_rate: str | float | None
    l1: float | str
    l2: float | str
    init_deviation: float | str
    admission: float | str
    linear_optimizer: str | float | None
    linear_learning_rate: str | float | None
    linear_l1: float | str
    linear_l2: float | str
    standardize: str | float | None
    normalize: str | float | None
    epochs: str | float | None
    batch_size: str | float | None
    shuffle: str | float | None
    early_stopping: float | str
    early_stopping_metric: str | float | None
    validation_share: float | str
    positive_label: str | float | None
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class FMRegressor(_estimators.Regressor):
    def __init__(
        self,
        *,
        k: float | str = ...,
        optimizer: str | float | None = ...,
        learning_rate: str | float | None = ...,
        l1: float | str = ...,
        l2: float | str = ...,
        init_deviation: float | str = ...,
        admission: float | str = ...,
        linear_optimizer: str | float | None = ...,
        linear_learning_rate: str | float | None = ...,
        linear_l1: float | str = ...,
        linear_l2: float | str = ...,
        standardize: str | float | None = ...,
        normalize: str | float | None = ...,
        epochs: str | float | None = ...,
        batch_size: str | float | None = ...,
        shuffle: str | float | None = ...,
        early_stopping: float | str = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        positive_label: str | float | None = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    k: float | str
    optimizer: str | float | None
    learning_rate: str | float | None
    l1: float | str
    l2: float | str
    init_deviation: float | str
    admission: float | str
    linear_optimizer: str | float | None
    linear_learning_rate: str | float | None
    linear_l1: float | str
    linear_l2: float | str
    standardize: str | float | None
    normalize: str | float | None
    epochs: str | float | None
    batch_size: str | float | None
    shuffle: str | float | None
    early_stopping: float | str
    early_stopping_metric: str | float | None
    validation_share: float | str
    positive_label: str | float | None
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class FFMClassifier(_estimators.ProbabilisticClassifier):
    def __init__(
        self,
        *,
        k: float | str = ...,
        loss: str | float | None = ...,
        optimizer: str | float | None = ...,
        learning_rate: str | float | None = ...,
        l1: float | str = ...,
        l2: float | str = ...,
        init_deviation: float | str = ...,
        admission: float | str = ...,
        linear_optimizer: str | float | None = ...,
        linear_learning_rate: str | float | None = ...,
        linear_l1: float | str = ...,
        linear_l2: float | str = ...,
        standardize: str | float | None = ...,
        normalize: str | float | None = ...,
        epochs: str | float | None = ...,
        batch_size: str | float | None = ...,
        shuffle: str | float | None = ...,
        early_stopping: float | str = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        positive_label: str | float | None = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    k: float | str
    loss: str | float | None
    optimizer: str | float | None
    learning_rate: str | float | None
    l1: float | str
    l2: float | str
    init_deviation: float | str
    admission: float | str
    linear_optimizer: str | float | None
    linear_learning_rate: str | float | None
    linear_l1: float | str
    linear_l2: float | str
    standardize: str | float | None
    normalize: str | float | None
    epochs: str | float | None
    batch_size: str | float | None
    shuffle: str | float | None
    early_stopping: float | str
    early_stopping_metric: str | float | None
    validation_share: float | str
    positive_label: str | float | None
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class FFMRegressor(_estimators.Regressor):
    def __init__(
        self,
        *,
        k: float | str = ...,
        optimizer: str | float | None = ...,
        learning_rate: str | float | None = ...,
        l1: float | str = ...,
        l2: float | str = ...,
        init_deviation: float | str = ...,
        admission: float | str = ...,
        linear_optimizer: str | float | None = ...,
        linear_learning_rate: str | float | None = ...,
        linear_l1: float | str = ...,
        linear_l2: float | str = ...,
        standardize: str | float | None = ...,
        normalize: str | float | None = ...,
        epochs: str | float | None = ...,
        batch_size: str | float | None = ...,
        shuffle: str | float | None = ...,
        early_stopping: float | str = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        positive_label: str | float | None = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    k: float | str
    optimizer: str | float | None
    learning_rate: str | float | None
    l1: float | str
    l2: float | str
    init_deviation: float | str
    admission: float | str
    linear_optimizer: str | float | None
    linear_learning_rate: str | float | None
    linear_l1: float | str
    linear_l2: float | str
    standardize: str | float | None
    normalize: str | float | None
    epochs: str | float | None
    batch_size: str | float | None
    shuffle: str | float | None
    early_stopping: float | str
    early_stopping_metric: str | float | None
    validation_share: float | str
    positive_label: str | float | None
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class KMeans(_estimators.Clusterer):
    def __init__(
        self,
        *,
        k: float | str = ...,
        method: str | float | None = ...,
        distance: str | float | None = ...,
        init: str | float | None = ...,
        max_iterations: float | str = ...,
        tolerance: float | str = ...,
        epochs: float | str = ...,
        batch_size: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    k: float | str
    method: str | float | None
    distance: str | float | None
    init: str | float | None
    max_iterations: float | str
    tolerance: float | str
    epochs: float | str
    batch_size: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class LogisticRegression(_estimators.ProbabilisticClassifier):
    def __init__(
        self,
        *,
        optimizer: str | float | None = ...,
        learning_rate: str | float | None = ...,
        beta: float | str = ...,
        l1: float | str = ...,
        l2: str | float | None = ...,
        momentum: float | str = ...,
        beta1: float | str = ...,
        beta2: float | str = ...,
        epsilon: float | str = ...,
        decay: float | str = ...,
        history: float | str = ...,
        max_iterations: float | str = ...,
        tolerance: float | str = ...,
        start: str | float | None = ...,
        rho: float | str = ...,
        adaptive_rho: bool = ...,
        local_iterations: float | str = ...,
        schedule: str | float | None = ...,
        schedule_decay: float | str = ...,
        schedule_every: float | str = ...,
        schedule_stretch: float | str = ...,
        schedule_floor: float | str = ...,
        gradient: str | float | None = ...,
        epochs: str | float | None = ...,
        batch_size: str | float | None = ...,
        shuffle: str | float | None = ...,
        intercept: bool = ...,
        standardize: str | float | None = ...,
        normalize: str | float | None = ...,
        dimensions: str | float | None = ...,
        early_stopping: float | str = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        class_weights: str | float | None = ...,
        positive_label: str | float | None = ...,
        clip: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    optimizer: str | float | None
    learning_rate: str | float | None
    beta: float | str
    l1: float | str
    l2: str | float | None
    momentum: float | str
    beta1: float | str
    beta2: float | str
    epsilon: float | str
    decay: float | str
    history: float | str
    max_iterations: float | str
    tolerance: float | str
    start: str | float | None
    rho: float | str
    adaptive_rho: bool
    local_iterations: float | str
    schedule: str | float | None
    schedule_decay: float | str
    schedule_every: float | str
    schedule_stretch: float | str
    schedule_floor: float | str
    gradient: str | float | None
    epochs: str | float | None
    batch_size: str | float | None
    shuffle: str | float | None
    intercept: bool
    standardize: str | float | None
    normalize: str | float | None
    dimensions: str | float | None
    early_stopping: float | str
    early_stopping_metric: str | float | None
    validation_share: float | str
    class_weights: str | float | None
    positive_label: str | float | None
    clip: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class LinearSVC(_estimators.Classifier):
    def __init__(
        self,
        *,
        optimizer: str | float | None = ...,
        learning_rate: str | float | None = ...,
        beta: float | str = ...,
        l1: float | str = ...,
        l2: str | float | None = ...,
        momentum: float | str = ...,
        beta1: float | str = ...,
        beta2: float | str = ...,
        epsilon: float | str = ...,
        decay: float | str = ...,
        history: float | str = ...,
        max_iterations: float | str = ...,
        tolerance: float | str = ...,
        start: str | float | None = ...,
        rho: float | str = ...,
        adaptive_rho: bool = ...,
        local_iterations: float | str = ...,
        schedule: str | float | None = ...,
        schedule_decay: float | str = ...,
        schedule_every: float | str = ...,
        schedule_stretch: float | str = ...,
        schedule_floor: float | str = ...,
        gradient: str | float | None = ...,
        epochs: str | float | None = ...,
        batch_size: str | float | None = ...,
        shuffle: str | float | None = ...,
        intercept: bool = ...,
        standardize: str | float | None = ...,
        normalize: str | float | None = ...,
        dimensions: str | float | None = ...,
        early_stopping: float | str = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        class_weights: str | float | None = ...,
        positive_label: str | float | None = ...,
        clip: float | str = ...,
        loss: str | float | None = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    optimizer: str | float | None
    learning_rate: str | float | None
    beta: float | str
    l1: float | str
    l2: str | float | None
    momentum: float | str
    beta1: float | str
    beta2: float | str
    epsilon: float | str
    decay: float | str
    history: float | str
    max_iterations: float | str
    tolerance: float | str
    start: str | float | None
    rho: float | str
    adaptive_rho: bool
    local_iterations: float | str
    schedule: str | float | None
    schedule_decay: float | str
    schedule_every: float | str
    schedule_stretch: float | str
    schedule_floor: float | str
    gradient: str | float | None
    epochs: str | float | None
    batch_size: str | float | None
    shuffle: str | float | None
    intercept: bool
    standardize: str | float | None
    normalize: str | float | None
    dimensions: str | float | None
    early_stopping: float | str
    early_stopping_metric: str | float | None
    validation_share: float | str
    class_weights: str | float | None
    positive_label: str | float | None
    clip: float | str
    loss: str | float | None
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class SoftmaxRegression(_estimators.ProbabilisticClassifier):
    def __init__(
        self,
        *,
        optimizer: str | float | None = ...,
        learning_rate: str | float | None = ...,
        beta: float | str = ...,
        l1: float | str = ...,
        l2: str | float | None = ...,
        momentum: float | str = ...,
        beta1: float | str = ...,
        beta2: float | str = ...,
        epsilon: float | str = ...,
        decay: float | str = ...,
        history: float | str = ...,
        max_iterations: float | str = ...,
        tolerance: float | str = ...,
        start: str | float | None = ...,
        rho: float | str = ...,
        adaptive_rho: bool = ...,
        local_iterations: float | str = ...,
        schedule: str | float | None = ...,
        schedule_decay: float | str = ...,
        schedule_every: float | str = ...,
        schedule_stretch: float | str = ...,
        schedule_floor: float | str = ...,
        gradient: str | float | None = ...,
        epochs: str | float | None = ...,
        batch_size: str | float | None = ...,
        shuffle: str | float | None = ...,
        intercept: bool = ...,
        standardize: str | float | None = ...,
        normalize: str | float | None = ...,
        dimensions: str | float | None = ...,
        early_stopping: float | str = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        class_weights: str | float | None = ...,
        clip: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    optimizer: str | float | None
    learning_rate: str | float | None
    beta: float | str
    l1: float | str
    l2: str | float | None
    momentum: float | str
    beta1: float | str
    beta2: float | str
    epsilon: float | str
    decay: float | str
    history: float | str
    max_iterations: float | str
    tolerance: float | str
    start: str | float | None
    rho: float | str
    adaptive_rho: bool
    local_iterations: float | str
    schedule: str | float | None
    schedule_decay: float | str
    schedule_every: float | str
    schedule_stretch: float | str
    schedule_floor: float | str
    gradient: str | float | None
    epochs: str | float | None
    batch_size: str | float | None
    shuffle: str | float | None
    intercept: bool
    standardize: str | float | None
    normalize: str | float | None
    dimensions: str | float | None
    early_stopping: float | str
    early_stopping_metric: str | float | None
    validation_share: float | str
    class_weights: str | float | None
    clip: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class LinearRegression(_estimators.Regressor):
    def __init__(
        self,
        *,
        optimizer: str | float | None = ...,
        learning_rate: str | float | None = ...,
        beta: float | str = ...,
        l1: float | str = ...,
        l2: str | float | None = ...,
        momentum: float | str = ...,
        beta1: float | str = ...,
        beta2: float | str = ...,
        epsilon: float | str = ...,
        decay: float | str = ...,
        history: float | str = ...,
        max_iterations: float | str = ...,
        tolerance: float | str = ...,
        start: str | float | None = ...,
        rho: float | str = ...,
        adaptive_rho: bool = ...,
        local_iterations: float | str = ...,
        schedule: str | float | None = ...,
        schedule_decay: float | str = ...,
        schedule_every: float | str = ...,
        schedule_stretch: float | str = ...,
        schedule_floor: float | str = ...,
        gradient: str | float | None = ...,
        epochs: str | float | None = ...,
        batch_size: str | float | None = ...,
        shuffle: str | float | None = ...,
        intercept: bool = ...,
        standardize: str | float | None = ...,
        normalize: str | float | None = ...,
        dimensions: str | float | None = ...,
        early_stopping: float | str = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        class_weights: str | float | None = ...,
        positive_label: str | float | None = ...,
        clip: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    optimizer: str | float | None
    learning_rate: str | float | None
    beta: float | str
    l1: float | str
    l2: str | float | None
    momentum: float | str
    beta1: float | str
    beta2: float | str
    epsilon: float | str
    decay: float | str
    history: float | str
    max_iterations: float | str
    tolerance: float | str
    start: str | float | None
    rho: float | str
    adaptive_rho: bool
    local_iterations: float | str
    schedule: str | float | None
    schedule_decay: float | str
    schedule_every: float | str
    schedule_stretch: float | str
    schedule_floor: float | str
    gradient: str | float | None
    epochs: str | float | None
    batch_size: str | float | None
    shuffle: str | float | None
    intercept: bool
    standardize: str | float | None
    normalize: str | float | None
    dimensions: str | float | None
    early_stopping: float | str
    early_stopping_metric: str | float | None
    validation_share: float | str
    class_weights: str | float | None
    positive_label: str | float | None
    clip: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class HuberRegressor(_estimators.Regressor):
    def __init__(
        self,
        *,
        optimizer: str | float | None = ...,
        learning_rate: str | float | None = ...,
        beta: float | str = ...,
        l1: float | str = ...,
        l2: str | float | None = ...,
        momentum: float | str = ...,
        beta1: float | str = ...,
        beta2: float | str = ...,
        epsilon: float | str = ...,
        decay: float | str = ...,
        history: float | str = ...,
        max_iterations: float | str = ...,
        tolerance: float | str = ...,
        start: str | float | None = ...,
        rho: float | str = ...,
        adaptive_rho: bool = ...,
        local_iterations: float | str = ...,
        schedule: str | float | None = ...,
        schedule_decay: float | str = ...,
        schedule_every: float | str = ...,
        schedule_stretch: float | str = ...,
        schedule_floor: float | str = ...,
        gradient: str | float | None = ...,
        epochs: str | float | None = ...,
        batch_size: str | float | None = ...,
        shuffle: str | float | None = ...,
        intercept: bool = ...,
        standardize: str | float | None = ...,
        normalize: str | float | None = ...,
        dimensions: str | float | None = ...,
        early_stopping: float | str = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        class_weights: str | float | None = ...,
        positive_label: str | float | None = ...,
        clip: float | str = ...,
        delta: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    optimizer: str | float | None
    learning_rate: str | float | None
    beta: float | str
    l1: float | str
    l2: str | float | None
    momentum: float | str
    beta1: float | str
    beta2: float | str
    epsilon: float | str
    decay: float | str
    history: float | str
    max_iterations: float | str
    tolerance: float | str
    start: str | float | None
    rho: float | str
    adaptive_rho: bool
    local_iterations: float | str
    schedule: str | float | None
    schedule_decay: float | str
    schedule_every: float | str
    schedule_stretch: float | str
    schedule_floor: float | str
    gradient: str | float | None
    epochs: str | float | None
    batch_size: str | float | None
    shuffle: str | float | None
    intercept: bool
    standardize: str | float | None
    normalize: str | float | None
    dimensions: str | float | None
    early_stopping: float | str
    early_stopping_metric: str | float | None
    validation_share: float | str
    class_weights: str | float | None
    positive_label: str | float | None
    clip: float | str
    delta: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class ALS(_recommenders.Recommender):
    def __init__(
        self,
        *,
        factors: float | str = ...,
        iterations: float | str = ...,
        lambda_: float | str = ...,
        solver: str | float | None = ...,
        cg_steps: float | str = ...,
        duplicates: str | float | None = ...,
        implicit_weight: float | str = ...,
        validation_share: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    factors: float | str
    iterations: float | str
    lambda_: float | str
    solver: str | float | None
    cg_steps: float | str
    duplicates: str | float | None
    implicit_weight: float | str
    validation_share: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class ImplicitALS(_recommenders.Recommender):
    def __init__(
        self,
        *,
        factors: float | str = ...,
        iterations: float | str = ...,
        loss: str | float | None = ...,
        lambda_: str | float | None = ...,
        unobserved: str | float | None = ...,
        nu: float | str = ...,
        alpha: float | str = ...,
        solver: str | float | None = ...,
        cg_steps: float | str = ...,
        duplicates: str | float | None = ...,
        validation_share: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    factors: float | str
    iterations: float | str
    loss: str | float | None
    lambda_: str | float | None
    unobserved: str | float | None
    nu: float | str
    alpha: float | str
    solver: str | float | None
    cg_steps: float | str
    duplicates: str | float | None
    validation_share: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class MatrixFactorization(_recommenders.Recommender):
    def __init__(
        self,
        *,
        factors: float | str = ...,
        epochs: float | str = ...,
        learning_rate: float | str = ...,
        lambda_: float | str = ...,
        bias_lambda: float | str = ...,
        nonnegative: bool = ...,
        duplicates: str | float | None = ...,
        validation_share: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    factors: float | str
    epochs: float | str
    learning_rate: float | str
    lambda_: float | str
    bias_lambda: float | str
    nonnegative: bool
    duplicates: str | float | None
    validation_share: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class BPR(_recommenders.Recommender):
    def __init__(
        self,
        *,
        factors: float | str = ...,
        epochs: float | str = ...,
        learning_rate: float | str = ...,
        lambda_: float | str = ...,
        bias_lambda: float | str = ...,
        negatives: float | str = ...,
        duplicates: str | float | None = ...,
        validation_share: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    factors: float | str
    epochs: float | str
    learning_rate: float | str
    lambda_: float | str
    bias_lambda: float | str
    negatives: float | str
    duplicates: str | float | None
    validation_share: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class ItemKNN(_recommenders.Recommender):
    def __init__(
        self,
        *,
        similarity: str | float | None = ...,
        user_exponent: float | str = ...,
        item_exponent: float | str = ...,
        neighbors: float | str = ...,
        k1: float | str = ...,
        b: float | str = ...,
        duplicates: str | float | None = ...,
        validation_share: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    similarity: str | float | None
    user_exponent: float | str
    item_exponent: float | str
    neighbors: float | str
    k1: float | str
    b: float | str
    duplicates: str | float | None
    validation_share: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class EASE(_recommenders.Recommender):
    def __init__(
        self,
        *,
        lambda_: float | str = ...,
        neighbors: float | str = ...,
        duplicates: str | float | None = ...,
        validation_share: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    lambda_: float | str
    neighbors: float | str
    duplicates: str | float | None
    validation_share: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class LDA(_estimators.Topics):
    def __init__(
        self,
        *,
        topics: float | str = ...,
        sweeps: float | str = ...,
        alpha: float | str = ...,
        optimize_alpha: bool = ...,
        beta: float | str = ...,
        optimize_beta: bool = ...,
        min_documents: float | str = ...,
        max_document_share: float | str = ...,
        vocabulary_limit: float | str = ...,
        inference_sweeps: float | str = ...,
        inference_seed: float | str = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    topics: float | str
    sweeps: float | str
    alpha: float | str
    optimize_alpha: bool
    beta: float | str
    optimize_beta: bool
    min_documents: float | str
    max_document_share: float | str
    vocabulary_limit: float | str
    inference_sweeps: float | str
    inference_seed: float | str
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class GradientBoostingClassifier(_estimators.ProbabilisticClassifier):
    def __init__(
        self,
        *,
        objective: str | float | None = ...,
        scale_pos_weight: float | str = ...,
        alpha: float | str = ...,
        poisson_max_delta_step: float | str = ...,
        tweedie_variance_power: float | str = ...,
        lambdarank_truncation_level: float | str = ...,
        iterations: str | float | None = ...,
        learning_rate: str | float | None = ...,
        leaves: str | float | None = ...,
        max_depth: float | str = ...,
        max_bins: float | str = ...,
        min_records: float | str = ...,
        min_hessian: float | str = ...,
        min_gain: float | str = ...,
        l1: float | str = ...,
        l2: float | str = ...,
        bagging_fraction: float | str = ...,
        top_rate: float | str = ...,
        other_rate: float | str = ...,
        feature_fraction: str | float | None = ...,
        feature_fraction_bylevel: float | str = ...,
        growth: str | float | None = ...,
        extra_trees: bool = ...,
        path_smooth: float | str = ...,
        monotone_constraints: str | float | None = ...,
        interaction_constraints: str | float | None = ...,
        gradient_bits: float | str = ...,
        early_stopping: str | float | None = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        positive_label: str | float | None = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    objective: str | float | None
    scale_pos_weight: float | str
    alpha: float | str
    poisson_max_delta_step: float | str
    tweedie_variance_power: float | str
    lambdarank_truncation_level: float | str
    iterations: str | float | None
    learning_rate: str | float | None
    leaves: str | float | None
    max_depth: float | str
    max_bins: float | str
    min_records: float | str
    min_hessian: float | str
    min_gain: float | str
    l1: float | str
    l2: float | str
    bagging_fraction: float | str
    top_rate: float | str
    other_rate: float | str
    feature_fraction: str | float | None
    feature_fraction_bylevel: float | str
    growth: str | float | None
    extra_trees: bool
    path_smooth: float | str
    monotone_constraints: str | float | None
    interaction_constraints: str | float | None
    gradient_bits: float | str
    early_stopping: str | float | None
    early_stopping_metric: str | float | None
    validation_share: float | str
    positive_label: str | float | None
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class GradientBoostingRegressor(_estimators.Regressor):
    def __init__(
        self,
        *,
        objective: str | float | None = ...,
        scale_pos_weight: float | str = ...,
        alpha: float | str = ...,
        poisson_max_delta_step: float | str = ...,
        tweedie_variance_power: float | str = ...,
        lambdarank_truncation_level: float | str = ...,
        iterations: str | float | None = ...,
        learning_rate: str | float | None = ...,
        leaves: str | float | None = ...,
        max_depth: float | str = ...,
        max_bins: float | str = ...,
        min_records: float | str = ...,
        min_hessian: float | str = ...,
        min_gain: float | str = ...,
        l1: float | str = ...,
        l2: float | str = ...,
        bagging_fraction: float | str = ...,
        top_rate: float | str = ...,
        other_rate: float | str = ...,
        feature_fraction: str | float | None = ...,
        feature_fraction_bylevel: float | str = ...,
        growth: str | float | None = ...,
        extra_trees: bool = ...,
        path_smooth: float | str = ...,
        monotone_constraints: str | float | None = ...,
        interaction_constraints: str | float | None = ...,
        gradient_bits: float | str = ...,
        early_stopping: str | float | None = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        positive_label: str | float | None = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    objective: str | float | None
    scale_pos_weight: float | str
    alpha: float | str
    poisson_max_delta_step: float | str
    tweedie_variance_power: float | str
    lambdarank_truncation_level: float | str
    iterations: str | float | None
    learning_rate: str | float | None
    leaves: str | float | None
    max_depth: float | str
    max_bins: float | str
    min_records: float | str
    min_hessian: float | str
    min_gain: float | str
    l1: float | str
    l2: float | str
    bagging_fraction: float | str
    top_rate: float | str
    other_rate: float | str
    feature_fraction: str | float | None
    feature_fraction_bylevel: float | str
    growth: str | float | None
    extra_trees: bool
    path_smooth: float | str
    monotone_constraints: str | float | None
    interaction_constraints: str | float | None
    gradient_bits: float | str
    early_stopping: str | float | None
    early_stopping_metric: str | float | None
    validation_share: float | str
    positive_label: str | float | None
    seed: float | str
    tasks: str | float | None
    threads: str | float | None

class GradientBoostingRanker(_estimators.Ranker):
    def __init__(
        self,
        *,
        scale_pos_weight: float | str = ...,
        alpha: float | str = ...,
        poisson_max_delta_step: float | str = ...,
        tweedie_variance_power: float | str = ...,
        lambdarank_truncation_level: float | str = ...,
        iterations: str | float | None = ...,
        learning_rate: str | float | None = ...,
        leaves: str | float | None = ...,
        max_depth: float | str = ...,
        max_bins: float | str = ...,
        min_records: float | str = ...,
        min_hessian: float | str = ...,
        min_gain: float | str = ...,
        l1: float | str = ...,
        l2: float | str = ...,
        bagging_fraction: float | str = ...,
        top_rate: float | str = ...,
        other_rate: float | str = ...,
        feature_fraction: str | float | None = ...,
        feature_fraction_bylevel: float | str = ...,
        growth: str | float | None = ...,
        extra_trees: bool = ...,
        path_smooth: float | str = ...,
        monotone_constraints: str | float | None = ...,
        interaction_constraints: str | float | None = ...,
        gradient_bits: float | str = ...,
        early_stopping: str | float | None = ...,
        early_stopping_metric: str | float | None = ...,
        validation_share: float | str = ...,
        positive_label: str | float | None = ...,
        seed: float | str = ...,
        tasks: str | float | None = ...,
        threads: str | float | None = ...,
    ) -> None: ...
    scale_pos_weight: float | str
    alpha: float | str
    poisson_max_delta_step: float | str
    tweedie_variance_power: float | str
    lambdarank_truncation_level: float | str
    iterations: str | float | None
    learning_rate: str | float | None
    leaves: str | float | None
    max_depth: float | str
    max_bins: float | str
    min_records: float | str
    min_hessian: float | str
    min_gain: float | str
    l1: float | str
    l2: float | str
    bagging_fraction: float | str
    top_rate: float | str
    other_rate: float | str
    feature_fraction: str | float | None
    feature_fraction_bylevel: float | str
    growth: str | float | None
    extra_trees: bool
    path_smooth: float | str
    monotone_constraints: str | float | None
    interaction_constraints: str | float | None
    gradient_bits: float | str
    early_stopping: str | float | None
    early_stopping_metric: str | float | None
    validation_share: float | str
    positive_label: str | float | None
    seed: float | str
    tasks: str | float | None
    threads: str | float | None
