"""Products of matrices and vectors, distances, decompositions.

Left out, because the documented contract differs from torch there:
- slopes of distances between points that coincide (zero here, torch has conventions per order), of cosines of zero vectors;
- signs of eigenvectors and of the columns of QR and SVD, which are free: QR is compared with a positive diagonal of R only in its
  product, eigh and svd in their values.
"""

import torch
import torch.nn.functional as F

from cases import add
from draw import AWAY, DATA, GRID, I, T, U, numbers, seed_of


def turn(x, on):
    return x.transpose(-1, -2) if on else x


def gemm(a, b, alpha=1, beta=1, c=None, transA=False, transB=False):
    y = alpha * (turn(a, transA) @ turn(b, transB))
    return y if c is None else y + beta * c


def gemv(a, x, alpha=1, beta=1, y=None, transA=False):
    r = alpha * (turn(a, transA) @ x)
    return r if y is None else r + beta * y


def dot(a, b):
    """NumPy's dot: the last axis of a, the second to last of b."""
    if a.dim() == 0 or b.dim() == 0:
        return a * b
    return torch.tensordot(a, b, dims=([a.dim() - 1], [0 if b.dim() == 1 else b.dim() - 2]))


CALLS = {
    'matmul': torch.matmul,
    'gemm': gemm,
    'gemv': gemv,
    'dot': dot,
    'vdot': lambda a, b: torch.dot(a.reshape(-1), b.reshape(-1)),
    'inner': torch.inner,
    'outer': lambda a, b: torch.outer(a.reshape(-1), b.reshape(-1)),
    'kron': torch.kron,
    'cross': lambda a, b, axis=-1: torch.linalg.cross(*torch.broadcast_tensors(a, b), dim=axis),
    'tensordot': lambda a, b, axes=2: torch.tensordot(a, b, dims=axes),
    'einsum': lambda text, *xs: torch.einsum(text, *xs),
    'bilinear': F.bilinear,
    'normalize': lambda x, p=2, axis=1, eps=1e-12: F.normalize(x, p, axis, eps),
    'cosineSimilarity': lambda a, b, axis=1, eps=1e-8: F.cosine_similarity(a, b, axis, eps),
    # Plain formulas: torch.cdist has no second derivative.
    'cdist': lambda a, b, p=2: torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), ord=p, dim=-1),
    'cholesky': torch.linalg.cholesky,
    'inv': torch.linalg.inv,
    'det': torch.linalg.det,
    'solve': torch.linalg.solve,
    'triangularSolve': lambda a, b, upper=False, unitDiagonal=False: torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=unitDiagonal),
}


def spread(name, shape, kind=U(-1, 1)):
    n = 1
    for s in shape:
        n *= s
    return torch.tensor(numbers(kind, seed_of(name), n)).reshape(shape)


def cases():
    for a, b in (
        ([3], [3]), ([2, 3], [3]), ([3], [3, 2]), ([2, 3], [3, 4]), ([2, 2, 3], [3, 4]), ([2, 3], [2, 3, 2]), ([2, 1, 2, 3], [3, 3, 2]), ([5, 1], [1, 4]),
        ([0, 3], [3, 2]), ([2, 0], [0, 3]), ([7, 33], [33, 5]), ([3, 200], [200, 2]), ([17, 16], [16, 18]), ([2, 1, 1, 2, 3], [1, 2, 1, 3, 2]), ([1, 1], [1, 1]),
    ):  # fmt: skip
        add('matmul', [T(a), T(b)], terms=max(1, a[-1]))
    for la, lb in (('transposed', 'plain'), ('plain', 'transposed'), ('transposed', 'transposed'), ('strided', 'flipped'), ('expanded', 'sliced')):
        add('matmul', [T([5, 6], layout=la), T([6, 4], layout=lb)], note=f'{la} {lb}', terms=6)
    for ta in (False, True):
        for tb in (False, True):
            a, b = ([4, 3] if ta else [3, 4]), ([2, 4] if tb else [4, 2])
            add('gemm', [T(a), T(b)], {'transA': ta, 'transB': tb}, terms=4)
            add('gemm', [T(a), T(b)], {'alpha': 0.5, 'beta': 2.0, 'c': T([2], U(-1, 1)), 'transA': ta, 'transB': tb}, terms=5)
    add('gemm', [T([3, 4]), T([4, 2])], {'beta': 0.25, 'c': T([3, 2])}, terms=5)
    add('gemv', [T([3, 4]), T([4])], terms=4)
    add('gemv', [T([4, 3]), T([4])], {'transA': True, 'alpha': 2.0, 'beta': -1.0, 'y': T([3])}, terms=5)
    for a, b in (([4], [4]), ([2, 3], [3]), ([3], [2, 3, 2]), ([2, 3], [3, 2]), ([2, 2, 3], [2, 3, 2]), ([], [3])):
        add('dot', [T(a), T(b)], terms=max([1, *a[-1:]]))
    for a, b in (([4], [4]), ([2, 3], [2, 3])):
        add('vdot', [T(a), T(b)], terms=6)
    for a, b in (([4], [4]), ([2, 3], [4, 3]), ([2, 2, 3], [3])):
        add('inner', [T(a), T(b)], terms=4)
    for a, b in (([3], [4]), ([1], [3]), ([2], [0])):
        add('outer', [T(a), T(b)])
    for a, b in (([2, 2], [2, 3]), ([3], [2]), ([2, 1], [1, 3]), ([2], [2, 2])):
        add('kron', [T(a), T(b)])
    for a, b, axis in (([3], [3], 0), ([2, 3], [2, 3], -1), ([3, 2], [3, 2], 0), ([2, 3, 2], [3, 2], 1 - 3)):
        add('cross', [T(a), T(b)], {'axis': axis})
    for a, b, axes in (([2, 3, 4], [3, 4, 2], 2), ([2, 3], [4, 5], 0), ([2, 3], [3, 2], 1), ([2, 3, 4], [4, 2], [[2, 0], [0, 1]]), ([3, 2], [3, 4], [[0], [0]])):
        add('tensordot', [T(a), T(b), axes], terms=12)
    for text, *shapes in (
        ('ij,jk->ik', [2, 3], [3, 4]), ('ij->ji', [2, 3]), ('ij->', [2, 3]), ('ii->i', [3, 3]), ('ii', [3, 3]), ('i,j->ij', [2], [3]), ('bij,bjk->bik', [2, 2, 3], [2, 3, 2]),
        ('ij,ij->', [2, 3], [2, 3]), ('ijk,kl->ijl', [2, 2, 3], [3, 2]), ('i,i', [4], [4]), ('ij,jk,kl->il', [2, 3], [3, 2], [2, 4]), ('...ij,...jk->...ik', [2, 2, 3], [3, 2]),
        ('bhqd,bhkd->bhqk', [1, 2, 3, 2], [1, 2, 4, 2]), ('ijk->kj', [2, 3, 2]), ('ij,kj->ik', [2, 3], [4, 3]), ('iij->j', [2, 2, 3]), ('ij,j->ij', [2, 3], [3]),
    ):  # fmt: skip
        add('einsum', [text, *[T(s) for s in shapes]], terms=12)
    add('bilinear', [T([2, 3]), T([2, 4]), T([2, 3, 4])], terms=12)
    add('bilinear', [T([2, 2, 3]), T([2, 2, 2]), T([3, 3, 2]), T([3])], terms=7)
    add('bilinear', [T([3]), T([2]), T([2, 3, 2]), T([2])], terms=7)
    for s, axis in (([3, 4], 1), ([3, 4], 0), ([2, 3, 2], -1)):
        for p in (2, 1, 3):
            add('normalize', [T(s, AWAY(0.2, 2), expand=False)], {'p': p, 'axis': axis})
        add('cosineSimilarity', [T(s, expand=False), T(s, expand=False)], {'axis': axis})
    add('cosineSimilarity', [T([3, 4], expand=False), T([4], expand=False)], {'axis': 1})
    for p in (2, 1, 3, 2.5, float('inf')):
        add('cdist', [T([3, 2], expand=False), T([4, 2], U(3, 5), expand=False)], {'p': p})
        add('cdist', [T([2, 3, 3], expand=False), T([2, 2, 3], U(3, 5), expand=False)], {'p': p})
    add('cdist', [T([3, 2], expand=False), T([4, 2], expand=False)])
    add('cdist', [T([2, 1, 2, 3], expand=False), T([3, 2, 3], U(3, 4), expand=False)])
    decompositions()
    for dtype in ('int32', 'int64', 'int16', 'int8', 'uint8'):
        kind = I(0, 9) if dtype != 'int32' else I(-1000, 1000)
        add('matmul', [T([3, 4], kind), T([4, 2], kind)], dtypes=dtype)
    for dtype in ('float16', 'bfloat16'):
        add('matmul', [T([5, 8], GRID(-16, 16, 16)), T([8, 3], GRID(-16, 16, 16))], dtypes=dtype)
        add('matmul', [T([2, 3, 40], GRID(-16, 16, 16)), T([40, 2], GRID(-16, 16, 16))], dtypes=dtype)


def decompositions():
    for n, batch in ((1, []), (2, []), (4, []), (3, [2]), (7, [])):
        name = f'positive {n} {batch}'
        a = spread(name, [*batch, n, n])
        positive = a @ a.transpose(-1, -2) + torch.eye(n, dtype=torch.float64)
        general = a + 2 * torch.eye(n, dtype=torch.float64)
        lower = a.tril(-1) + torch.diag_embed(1 + a.diagonal(0, -2, -1).abs())
        s = [*batch, n, n]
        # The lower triangle alone is read, and slopes go there in torch; symmetric slopes are its convention.
        add('cholesky', [T(s, DATA(positive.numpy()))], grad=False)
        add('inv', [T(s, DATA(general.numpy()))])
        add('det', [T(s, DATA(general.numpy()))])
        add('solve', [T(s, DATA(general.numpy())), T([*batch, n, 2])])
        add('triangularSolve', [T(s, DATA(lower.numpy())), T([*batch, n, 2])])
        add('triangularSolve', [T(s, DATA(lower.transpose(-1, -2).contiguous().numpy())), T([*batch, n, 3])], {'upper': True})
        add('triangularSolve', [T(s, DATA(lower.numpy())), T([*batch, n, 2])], {'unitDiagonal': True})
