"""Products of matrices and sums of products."""

from __future__ import annotations

import numpy as np
from fusion import fused
from subject import agree, compares, wide

EQUATIONS = (
    "ij,jk->ik", "ij,kj->ik", "bij,bjk->bik", "abc,acd->abd", "ijk,kl->ijl", "bhid,bhjd->bhij",
    "ij,ij->ij", "ij,ij->i", "i,j->ij", "ij->ji", "ijk->ik", "ij->",
)  # fmt: skip


def turned(array, turn):
    """Return the same matrices, written transposed if asked for."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)) if turn else array


def pair(draw, low=0):
    """Return two matrices that can be multiplied."""
    rows, depth, columns = draw.shape(3, low)
    return draw.array(rows, depth), draw.array(depth, columns)


@compares("MatMul", examples=30)
def matmul(draw):
    (a, b), turn_a, turn_b = pair(draw), draw.bool(), draw.bool()
    found = draw.op("MatMul")(
        turned(a, turn_a), turned(b, turn_b), transpose_a=turn_a, transpose_b=turn_b
    )
    agree(found, wide(a) @ wide(b))


def batched(draw, op, left, right):
    (rows, depth, columns), turn_x, turn_y = draw.shape(3), draw.bool(), draw.bool()
    x, y = draw.array(*left, rows, depth), draw.array(*right, depth, columns)
    found = draw.op(op)(turned(x, turn_x), turned(y, turn_y), adj_x=turn_x, adj_y=turn_y)
    agree(found, wide(x) @ wide(y))


@compares("BatchMatMul", examples=20)
def batch_matmul(draw):
    batch = draw.shape(draw.int(1, 3), high=4)
    batched(draw, "BatchMatMul", batch, batch)


@compares("BatchMatMulV2", examples=20)
def batch_matmul_with_broadcasting(draw):
    batch = draw.shape(draw.int(1, 3), low=1, high=4)
    left = tuple(1 if draw.bool() else size for size in batch)
    right = tuple(1 if draw.bool() else size for size in batch)[draw.int(0, len(batch)) :]
    batched(draw, "BatchMatMulV2", left, right)


@compares("Einsum", examples=30)
def einsum(draw):
    equation = draw.of(EQUATIONS)
    sizes = {letter: draw.int(1, 6) for letter in sorted(set(equation) - set(",->"))}
    terms = equation.partition("->")[0].split(",")
    arrays = [draw.array(*(sizes[letter] for letter in term)) for term in terms]
    found = draw.op("Einsum")(arrays, equation=equation)
    agree(found, np.einsum(equation, *map(wide, arrays)))


@compares("_ITEXFusedMatMul", examples=20)
def fused_matmul(draw):
    (a, b), turn_a, turn_b = pair(draw, 1), draw.bool(), draw.bool()
    bias = draw.array(b.shape[1])
    ops, after = fused(draw, ["BiasAdd"])
    found = draw.own("FusedMatMul")(
        turned(a, turn_a), turned(b, turn_b), [bias],
        transpose_a=turn_a, transpose_b=turn_b, fused_ops=ops,
    )  # fmt: skip
    agree(found, after(wide(a) @ wide(b) + wide(bias)))


@compares("_ITEXFusedMatMulWithSum")
def fused_matmul_with_sum(draw):
    a, b = pair(draw, 1)
    bias, addend = draw.array(b.shape[1]), draw.array(a.shape[0], b.shape[1])
    found = draw.own("FusedMatMulWithSum")(a, b, [bias, addend], fused_ops=["BiasAdd", "Add"])
    agree(found, wide(a) @ wide(b) + wide(bias) + wide(addend))


@compares("_ITEXFusedBatchMatMulV2")
def fused_batch_matmul(draw):
    batch, (rows, depth, columns) = draw.shape(2, 1, 3), draw.shape(3, 1)
    x, y = draw.array(*batch, rows, depth), draw.array(*batch, depth, columns)
    factor, mask = draw.array(1), draw.array(batch[0], 1, rows, columns)
    ops, args = (["Mul", "Add"], [factor, mask]) if draw.bool() else (["Mul"], [factor])
    found = draw.own("FusedBatchMatMulV2")(x, y, args, fused_ops=ops)
    expected = wide(x) @ wide(y) * wide(factor)
    agree(found, expected + wide(mask) if len(args) > 1 else expected)


@compares("_ITEXAccMatMul", types=("float32",))
def accumulating_matmul(draw):
    a, b = pair(draw, 1)
    found = draw.own("AccMatMul")(a, b, Tout="float", Tpost="float")
    agree(found, wide(a) @ wide(b))


@compares("_ITEXFusedAccMatMul", types=("float32",))
def fused_accumulating_matmul(draw):
    a, b = pair(draw, 1)
    bias = draw.array(b.shape[1])
    found = draw.own("FusedAccMatMul")(a, b, [bias], fused_ops=["BiasAdd"])
    agree(found, wide(a) @ wide(b) + wide(bias))


@compares("_ITEXFusedMatMulGrad")
def fused_matmul_grad(draw):
    rows, depth, columns = draw.shape(3, 1)
    x, gradient = draw.array(rows, depth), draw.array(rows, columns)
    product, bias = draw.own("FusedMatMulGrad")(x, gradient, fused_ops=["BiasAddGrad"])
    agree(product, wide(x).T @ wide(gradient))
    agree(bias, wide(gradient).sum(0))
