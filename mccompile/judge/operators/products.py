"""Sums of products of matrices."""

from __future__ import annotations

import numpy as np

from ..rules import Array, NodeSite, judges


@judges("MatMul")
def matmul(at: NodeSite) -> Array:
    return np.matmul(at[0], at[1])


@judges("Gemm")
def gemm(at: NodeSite) -> Array:
    a = at[0].T if at.attr("transA", 0) else at[0]
    b = at[1].T if at.attr("transB", 0) else at[1]
    is_float = a.dtype.kind == "f"
    alpha, beta = at.attr("alpha", 1.0), at.attr("beta", 1.0)
    found = alpha * (a @ b) if is_float or alpha != 1 else a @ b
    if at.has(2):
        found = found + (beta * at[2] if is_float or beta != 1 else at[2])
    return np.asarray(found).astype(a.dtype)


@judges("Einsum")
def einsum(at: NodeSite) -> Array:
    equation = str(at.attr("equation")).replace(" ", "")
    return np.asarray(np.einsum(equation, *at.operands), at[0].dtype)


@judges("Det")
def determinant(at: NodeSite) -> Array:
    return np.asarray(np.linalg.det(at[0]))


@judges("com.microsoft::Inverse")
def inverse(at: NodeSite) -> Array:
    return np.linalg.inv(at[0])


def less_zero(x: Array, zero: Array | None, axis: int) -> Array:
    """Integers without their zero point, which may be one per position of an axis."""
    if zero is None:
        return x.astype(np.int64)
    if zero.ndim == 1 and zero.size > 1:
        shape = [1] * x.ndim
        shape[axis] = -1
        zero = zero.reshape(shape)
    elif zero.ndim <= 1:
        zero = zero.reshape(())
    return x.astype(np.int64) - zero.astype(np.int64)


@judges("MatMulInteger")
def matmul_integer(at: NodeSite) -> Array:
    a, b = less_zero(at[0], at.get(2), -2), less_zero(at[1], at.get(3), -1)
    return np.matmul(a, b).astype(np.int32)


@judges("com.microsoft::MatMulInteger16")
def matmul_integer16(at: NodeSite) -> Array:
    return np.matmul(at[0].astype(np.int64), at[1].astype(np.int64)).astype(np.int32)


@judges("com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul")
def fused_matmul(at: NodeSite) -> Array:
    a, b = at[0], at[1]
    for batch, whole in (("transBatchA", "transA"), ("transBatchB", "transB")):
        x = a if whole == "transA" else b
        if at.attr(batch, 0):  # the batch axes stand behind the first one of the matrix
            x = np.moveaxis(x, 0, -2)
        if at.attr(whole, 0) and x.ndim > 1:
            x = np.swapaxes(x, -1, -2)
        a, b = (x, b) if whole == "transA" else (a, x)
    return at.attr("alpha", 1.0) * np.matmul(a, b)


@judges("com.microsoft::CDist")
def distances(at: NodeSite) -> Array:
    squares = np.sum((at[0][:, None, :] - at[1][None, :, :]) ** 2, -1)
    return squares if at.attr("metric", "sqeuclidean") == "sqeuclidean" else np.sqrt(squares)
