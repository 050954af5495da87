"""Set models: encoder, aggregation and decoder; an aggregation layer that finds its own law; baselines of the paper."""

from abelnet.nn.aggregations import make_aggregation
from abelnet.nn.bank import GatedBank
from abelnet.nn.baselines import MLP, DeepSets
from abelnet.nn.channelwise import Channelwise
from abelnet.nn.context import ContextAggregation
from abelnet.nn.estimators import MultisetClassifier, MultisetRegressor
from abelnet.nn.labels import LabelDecoder
from abelnet.nn.sets import SetModel
from abelnet.nn.stacks import DeepSetsStack

__all__ = [
    "MLP",
    "Channelwise",
    "ContextAggregation",
    "DeepSets",
    "DeepSetsStack",
    "GatedBank",
    "LabelDecoder",
    "MultisetClassifier",
    "MultisetRegressor",
    "SetModel",
    "make_aggregation",
]
