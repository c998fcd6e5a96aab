"""Normalization layers on the CPU, fast and right: LayerNorm, RMSNorm, grouped and spherical norms, for NumPy
arrays and torch CPU tensors.

>>> import numpy as np
>>> normalize(np.array([[1.0, 2.0, 3.0, 6.0]]), eps=0)
array([[-1.06904497, -0.53452248,  0.        ,  1.60356745]])
"""

from ._kernels import (__version__, add_normalize, curvature, hessian_vector, jacobian_vector, normalize,
                       normalize_backward, vector_jacobian)

__all__ = ["add_normalize", "curvature", "hessian_vector", "jacobian_vector", "normalize", "normalize_backward",
           "vector_jacobian"]
