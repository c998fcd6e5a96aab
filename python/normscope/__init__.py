"""What normalization layers do: in a checkpoint, in a live model, in an array.

>>> import numpy as np
>>> normalize(np.array([[1.0, 2.0, 3.0, 6.0]]), eps=0)
array([[-1.06904497, -0.53452248,  0.        ,  1.60356745]])
>>> keys = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1.0, 1.0]])
>>> select(keys).unselectable
[3]
"""

from . import results, signature
from ._core import __version__
from .analyses import Norm, reach, select, separate
from .foreign import convert
from .head import Head
from .kernels import (add_normalize, curvature, hessian_vector, jacobian_vector, normalize, normalize_backward,
                      vector_jacobian)
from .model import Activations, Model, Report, open
from .nets import Built, Net, Trained, build, count, run, train
from .verification import verify
from .watch import Watch, watch

# `open` is left out: `from normscope import *` must not hide Python's own.
__all__ = ["Activations", "Built", "Head", "Model", "Net", "Norm", "Report", "Trained", "Watch", "add_normalize", "build",
           "convert", "count", "curvature", "hessian_vector", "jacobian_vector", "normalize", "normalize_backward", "reach",
           "results", "run", "select", "separate", "signature", "train", "vector_jacobian", "verify", "watch"]
