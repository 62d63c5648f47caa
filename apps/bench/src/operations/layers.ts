/** Rows of products, convolutions, pooling, images, normalisation, attention, and of tensors made of nothing or at random. */
import { constants, drawing, floats, type OperationRow, plain, smooth } from './row.ts';

const square = [512, 512] as const;
const x = floats(square);
const v = floats([2 ** 18]);
const image = floats([8, 16, 32, 32]);
const line = floats([8, 16, 1024]);
const block = floats([4, 8, 16, 16, 16]);
const heads = floats([2, 4, 128, 64]);

export const layerRows: readonly OperationRow[] = [
  smooth('matmul', [floats([256, 256]), floats([256, 256])], 'a @ b', (pg, a, b) => pg.matmul(a!, b!)),
  smooth('matmul of batches', [floats([32, 64, 64]), floats([32, 64, 64])], 'a @ b', (pg, a, b) => pg.matmul(a!, b!)),
  smooth('gemv', [x, floats([512])], 'a @ b', (pg, a, b) => pg.gemv(a!, b!)),
  smooth('inner', [floats([512, 64]), floats([512, 64])], 'torch.inner(a, b)', (pg, a, b) => pg.inner(a!, b!)),
  smooth('vdot', [v, v], 'torch.dot(a, b)', (pg, a, b) => pg.vdot(a!, b!)),
  smooth('outer', [floats([512]), floats([512])], 'torch.outer(a, b)', (pg, a, b) => pg.outer(a!, b!)),
  smooth(
    'tensordot',
    [floats([32, 16, 64]), floats([64, 16, 32])],
    'torch.tensordot(a, b, ([1, 2], [1, 0]))',
    (pg, a, b) =>
      pg.tensordot(a!, b!, [
        [1, 2],
        [1, 0],
      ]),
  ),
  smooth('kron', [floats([32, 32]), floats([16, 16])], 'torch.kron(a, b)', (pg, a, b) => pg.kron(a!, b!)),
  smooth('cross', [floats([2 ** 17, 3]), floats([2 ** 17, 3])], 'torch.cross(a, b, -1)', (pg, a, b) =>
    pg.cross(a!, b!),
  ),
  smooth('bilinear', [floats([64, 32]), floats([64, 32]), floats([16, 32, 32])], 'F.bilinear(a, b, c)', (pg, a, b, c) =>
    pg.bilinear(a!, b!, c!),
  ),
  smooth(
    'einsum bij,bjk->bik',
    [floats([32, 64, 64]), floats([32, 64, 64])],
    'torch.einsum("bij,bjk->bik", a, b)',
    (pg, a, b) => pg.einsum('bij,bjk->bik', a!, b!),
  ),
  smooth('einsum ij,ij->i', [x, x], 'torch.einsum("ij,ij->i", a, b)', (pg, a, b) => pg.einsum('ij,ij->i', a!, b!)),
  smooth('einsum bhqd,bhkd->bhqk', [heads, heads], 'torch.einsum("bhqd,bhkd->bhqk", a, b)', (pg, a, b) =>
    pg.einsum('bhqd,bhkd->bhqk', a!, b!),
  ),
  smooth('normalize', [x], 'F.normalize(a, dim=1)', (pg, a) => pg.normalize(a!, { axis: 1 })),
  smooth('cosineSimilarity', [x, x], 'F.cosine_similarity(a, b)', (pg, a, b) => pg.cosineSimilarity(a!, b!)),
  smooth('cdist', [floats([512, 16]), floats([512, 16])], 'torch.cdist(a, b)', (pg, a, b) => pg.cdist(a!, b!)),
  smooth('cdist p 1', [floats([512, 16]), floats([512, 16])], 'torch.cdist(a, b, 1)', (pg, a, b) =>
    pg.cdist(a!, b!, { p: 1 }),
  ),
  smooth('rbfKernel', [floats([512, 16]), floats([512, 16])], '(-0.5 * torch.cdist(a, b) ** 2).exp()', (pg, a, b) =>
    pg.rbfKernel(a!, b!, { gamma: 0.5 }),
  ),
  smooth(
    'scaledDotProductAttention',
    [heads, heads, heads],
    '((a @ b.transpose(-1, -2)) / 8).softmax(-1) @ c',
    (pg, a, b, c) => pg.scaledDotProductAttention(a!, b!, c!),
  ),

  smooth('conv1d', [line, floats([16, 16, 5])], 'F.conv1d(a, b, padding=2)', (pg, a, b) =>
    pg.conv1d(a!, b!, { padding: 2 }),
  ),
  smooth('conv2d', [image, floats([32, 16, 3, 3])], 'F.conv2d(a, b, padding=1)', (pg, a, b) =>
    pg.conv2d(a!, b!, { padding: 1 }),
  ),
  smooth('conv3d', [block, floats([8, 8, 3, 3, 3])], 'F.conv3d(a, b, padding=1)', (pg, a, b) =>
    pg.conv3d(a!, b!, { padding: 1 }),
  ),
  smooth('depthwiseConv2d', [image, floats([16, 1, 3, 3])], 'F.conv2d(a, b, padding=1, groups=16)', (pg, a, b) =>
    pg.depthwiseConv2d(a!, b!, { padding: 1 }),
  ),
  smooth('convTranspose1d', [line, floats([16, 16, 4])], 'F.conv_transpose1d(a, b, stride=2, padding=1)', (pg, a, b) =>
    pg.convTranspose1d(a!, b!, { stride: 2, padding: 1 }),
  ),
  smooth(
    'convTranspose2d',
    [image, floats([16, 16, 4, 4])],
    'F.conv_transpose2d(a, b, stride=2, padding=1)',
    (pg, a, b) => pg.convTranspose2d(a!, b!, { stride: 2, padding: 1 }),
  ),
  smooth('unfold', [image], 'F.unfold(a, 3)', (pg, a) => pg.unfold(a!, 3)),
  smooth('fold', [floats([8, 144, 900])], 'F.fold(a, (32, 32), 3)', (pg, a) => pg.fold(a!, [32, 32], 3)),
  smooth('pixelShuffle', [image], 'F.pixel_shuffle(a, 2)', (pg, a) => pg.contiguous(pg.pixelShuffle(a!, 2))),
  smooth('pixelUnshuffle', [image], 'F.pixel_unshuffle(a, 2)', (pg, a) => pg.contiguous(pg.pixelUnshuffle(a!, 2))),

  smooth('avgPool1d', [line], 'F.avg_pool1d(a, 2)', (pg, a) => pg.avgPool1d(a!, 2)),
  smooth('avgPool2d', [image], 'F.avg_pool2d(a, 2)', (pg, a) => pg.avgPool2d(a!, 2)),
  smooth('avgPool2d 3 of stride 1', [image], 'F.avg_pool2d(a, 3, 1)', (pg, a) => pg.avgPool2d(a!, 3, { stride: 1 })),
  smooth('avgPool3d', [block], 'F.avg_pool3d(a, 2)', (pg, a) => pg.avgPool3d(a!, 2)),
  smooth('lpPool2d', [image], 'F.lp_pool2d(a, 2, 2)', (pg, a) => pg.lpPool2d(a!, 2, 2)),
  smooth('maxPool1d', [line], 'F.max_pool1d(a, 2)', (pg, a) => pg.maxPool1d(a!, 2)),
  smooth('maxPool2d', [image], 'F.max_pool2d(a, 2)', (pg, a) => pg.maxPool2d(a!, 2)),
  smooth('maxPool2d 3 of stride 2', [image], 'F.max_pool2d(a, 3, 2, 1)', (pg, a) =>
    pg.maxPool2d(a!, 3, { stride: 2, padding: 1 }),
  ),
  smooth('maxPool3d', [block], 'F.max_pool3d(a, 2)', (pg, a) => pg.maxPool3d(a!, 2)),
  smooth('maxUnpool2d', [image], 'F.max_unpool2d(*F.max_pool2d(a, 2, return_indices=True), 2)', (pg, a) => {
    const [values, indices] = pg.maxPool2d(a!, 2, { returnIndices: true });
    return pg.maxUnpool2d(values, indices, 2);
  }),
  smooth('adaptiveAvgPool2d', [image], 'F.adaptive_avg_pool2d(a, 7)', (pg, a) => pg.adaptiveAvgPool2d(a!, 7)),
  smooth('adaptiveMaxPool2d', [image], 'F.adaptive_max_pool2d(a, 7)', (pg, a) => pg.adaptiveMaxPool2d(a!, 7)),
  smooth('globalAvgPool2d', [image], 'a.mean((2, 3))', (pg, a) => pg.globalAvgPool2d(a!)),
  smooth('interpolate nearest', [image], 'F.interpolate(a, scale_factor=2)', (pg, a) =>
    pg.interpolate(a!, { scaleFactor: 2 }),
  ),
  smooth('interpolate nearest to 50', [image], 'F.interpolate(a, size=(50, 50))', (pg, a) =>
    pg.interpolate(a!, { size: 50 }),
  ),
  smooth('interpolate bilinear', [image], 'F.interpolate(a, scale_factor=2, mode="bilinear")', (pg, a) =>
    pg.interpolate(a!, { scaleFactor: 2, mode: 'bilinear' }),
  ),
  smooth('interpolate bicubic', [image], 'F.interpolate(a, scale_factor=2, mode="bicubic")', (pg, a) =>
    pg.interpolate(a!, { scaleFactor: 2, mode: 'bicubic' }),
  ),
  smooth('gridSample', [image, floats([8, 32, 32, 2])], 'F.grid_sample(a, b, align_corners=False)', (pg, a, b) =>
    pg.gridSample(a!, b!),
  ),
  smooth(
    'gridSample of 3 channels',
    [floats([4, 3, 128, 128]), floats([4, 128, 128, 2])],
    'F.grid_sample(a, b, align_corners=False)',
    (pg, a, b) => pg.gridSample(a!, b!),
  ),
  smooth(
    'gridSample nearest',
    [image, constants([8, 32, 32, 2])],
    'F.grid_sample(a, b, mode="nearest", align_corners=False)',
    (pg, a, b) => pg.gridSample(a!, b!, { mode: 'nearest' }),
  ),
  smooth('affineGrid', [floats([8, 2, 3])], 'F.affine_grid(a, (8, 1, 128, 128), align_corners=False)', (pg, a) =>
    pg.affineGrid(a!, [8, 1, 128, 128]),
  ),

  smooth('layerNorm', [x], 'F.layer_norm(a, (512,))', (pg, a) => pg.layerNorm(a!)),
  smooth('rmsNorm', [x], 'a * (a.square().mean(-1, keepdim=True) + 1e-6).rsqrt()', (pg, a) =>
    pg.rmsNorm(a!, { eps: 1e-6 }),
  ),
  smooth('groupNorm', [image], 'F.group_norm(a, 4)', (pg, a) => pg.groupNorm(a!, { groups: 4 })),
  smooth('instanceNorm', [image], 'F.instance_norm(a)', (pg, a) => pg.instanceNorm(a!)),
  smooth('localResponseNorm', [image], 'F.local_response_norm(a, 5)', (pg, a) => pg.localResponseNorm(a!, { size: 5 })),

  plain('zeros', [], 'torch.zeros(512, 512)', (pg) => pg.contiguous(pg.zeros([512, 512]))),
  plain('full', [], 'torch.full((512, 512), 3.0)', (pg) => pg.contiguous(pg.full([512, 512], 3))),
  plain('arange', [], 'torch.arange(262144, dtype=torch.float32)', (pg) =>
    pg.contiguous(pg.arange(262144, { dtype: 'float32' })),
  ),
  plain('linspace', [], 'torch.linspace(0, 1, 262144)', (pg) => pg.contiguous(pg.linspace(0, 1, 262144))),
  plain('eye', [], 'torch.eye(512)', (pg) => pg.contiguous(pg.eye(512))),
  plain('tri', [], 'torch.ones(512, 512).tril()', (pg) => pg.contiguous(pg.tri(512))),
  drawing('rand', [], 'torch.rand(2 ** 20)', (pg) => pg.rand([2 ** 20])),
  drawing('randn', [], 'torch.randn(2 ** 20)', (pg) => pg.randn([2 ** 20])),
  drawing('randint', [], 'torch.randint(0, 1000, (2 ** 20,))', (pg) => pg.randint(0, 1000, [2 ** 20])),
  drawing('bernoulli', [constants(square, 0, 1)], 'torch.bernoulli(a)', (pg, a) => pg.bernoulli(a!)),
  drawing('dropout', [x], 'F.dropout(a, 0.5)', (pg, a) => pg.dropout(a!, { p: 0.5 })),
  drawing('permutation', [], 'torch.randperm(2 ** 20)', (pg) => pg.permutation(2 ** 20)),
  drawing('permutation of rows', [x], 'a[torch.randperm(512)]', (pg, a) => pg.permutation(a!)),
  drawing('categorical', [x], 'torch.distributions.Categorical(logits=a).sample()', (pg, a) => pg.categorical(a!)),
  drawing('gumbel', [], '-torch.empty(512, 512).exponential_().log()', (pg) => pg.gumbel([512, 512])),
  drawing('multinomial', [constants(square, 0.1, 1)], 'torch.multinomial(a, 1)', (pg, a) => pg.multinomial(a!, 1)),
  drawing('multinomial 10', [constants(square, 0.1, 1)], 'torch.multinomial(a, 10)', (pg, a) => pg.multinomial(a!, 10)),
  drawing('multinomial with replacement', [constants(square, 0.1, 1)], 'torch.multinomial(a, 100, True)', (pg, a) =>
    pg.multinomial(a!, 100, { replacement: true }),
  ),
  drawing('multinomial of a line', [constants([2 ** 18], 0.1, 1)], 'torch.multinomial(a, 1000)', (pg, a) =>
    pg.multinomial(a!, 1000),
  ),
  drawing(
    'multinomial of a line with replacement',
    [constants([2 ** 18], 0.1, 1)],
    'torch.multinomial(a, 2 ** 18, True)',
    (pg, a) => pg.multinomial(a!, 2 ** 18, { replacement: true }),
  ),
];
