/** Wrong arguments of operations on images: refused at the call, naming the operation, both values and the remedy. */
import { beforeAll, describe } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { type RefusedCall, refusedCalls } from '../fixtures/refused.ts';

beforeAll(async () => {
  await pg.setEngine(createReferenceEngine());
});

const zeros = pg.zeros;
const image = (): pg.Tensor => zeros([1, 2, 4, 4]);

const bad: readonly RefusedCall[] = [
  [
    'interpolate',
    () => pg.interpolate(image(), undefined as never),
    /bad options: undefined.*such as { scaleFactor: 2 }/,
  ],
  ['conv1d', () => pg.conv1d(zeros([1, 2, 3, 3]), zeros([1, 2, 3])), /4 axes: needs 3.*unsqueeze/],
  ['conv2d', () => pg.conv2d(image(), zeros([1, 2, 3])), /kernel \[1, 2, 3\].*needs 4/],
  ['conv2d', () => pg.conv2d(image(), zeros([1, 3, 3, 3])), /\[1, 2, 4, 4\] has 2.*needs 3/],
  ['conv2d', () => pg.conv2d(image(), zeros([3, 1, 3, 3]), { groups: 2 }), /3 output features in 2 groups/],
  ['conv2d', () => pg.conv2d(image(), zeros([2, 2, 3, 3]), { groups: 0 }), /bad groups: 0/],
  ['conv2d', () => pg.conv2d(image(), zeros([2, 2, 3, 3]), { groups: 1.5 }), /bad groups: 1.5/],
  ['conv2d', () => pg.conv2d(image(), zeros([2, 2, 5, 3])), /kernel too large: 5 .* has 4 .*add padding/],
  ['conv2d', () => pg.conv2d(image(), zeros([2, 2, 3, 3]), { dilation: 2 }), /kernel too large: 5 .* has 4/],
  ['conv2d', () => pg.conv2d(image(), zeros([2, 2, 3, 3]), { padding: -1 }), /bad padding: -1/],
  [
    'conv2d',
    () => pg.conv2d(image(), zeros([2, 2, 3, 3]), { padding: [[1, 1], 0] as never }),
    /bad padding of axis 1: 0; must be an array/,
  ],
  [
    'conv2d',
    () => pg.conv2d(image(), zeros([2, 2, 3, 3]), { padding: [[1, 1], [0]] as never }),
    /bad padding: \[0\] for axis 1; must be a pair/,
  ],
  [
    'avgPool2d',
    () =>
      pg.avgPool2d(image(), 2, {
        padding: [
          [1, 1, 1],
          [0, 0],
        ] as never,
      }),
    /bad padding: \[1, 1, 1\] for axis 0; must be a pair/,
  ],
  ['conv2d', () => pg.conv2d(image(), zeros([2, 2, 3, 3]), { padding: [1, 1, 1] }), /padding: 3 for 2 axes/],
  ['conv2d', () => pg.conv2d(image(), zeros([2, 2, 3, 3]), { stride: [1, 0] }), /bad stride: 0/],
  ['conv2d', () => pg.conv2d(image(), zeros([2, 2, 3, 3]), { layout: 'chwn' as never }), /'chwn'.*'nchw' or 'nhwc'/],
  ['conv2d', () => pg.conv2d(image(), zeros([2, 2, 3, 3]), { bias: zeros([3]) }), /bias has shape \[3\].*\[2\]/],
  ['conv3d', () => pg.conv3d(image(), zeros([2, 2, 1, 3, 3])), /4 axes: needs 5/],
  ['depthwiseConv2d', () => pg.depthwiseConv2d(image(), zeros([2, 2, 3, 3])), /channels do not fit/],
  ['depthwiseConv2d', () => pg.depthwiseConv2d(image(), zeros([3, 1, 3, 3])), /3 output features in 2 groups/],
  ['convTranspose2d', () => pg.convTranspose2d(image(), zeros([3, 1, 2, 2])), /has 2.*needs 3/],
  [
    'convTranspose2d',
    () => pg.convTranspose2d(image(), zeros([2, 1, 2, 2]), { stride: 2, outputPadding: 2 }),
    /outputPadding too large: 2 with stride 2/,
  ],
  ['convTranspose2d', () => pg.convTranspose2d(image(), zeros([2, 1, 2, 2]), { padding: 3 }), /padding too large: 3/],
  ['convTranspose1d', () => pg.convTranspose1d(image(), zeros([2, 1, 2])), /4 axes: needs 3/],
  ['locallyConnectedConv2d', () => pg.locallyConnectedConv2d(image(), zeros([1, 2, 3, 3])), /4 axes: needs 6/],
  [
    'locallyConnectedConv2d',
    () => pg.locallyConnectedConv2d(image(), zeros([1, 2, 3, 3, 3, 3])),
    /positions differ: .*3 x 3, the result has 2 x 2/,
  ],
  ['locallyConnectedConv2d', () => pg.locallyConnectedConv2d(image(), zeros([1, 3, 2, 2, 3, 3])), /has 2, .*needs 3/],
  [
    'locallyConnectedConv2d',
    () => pg.locallyConnectedConv2d(image(), zeros([1, 2, 2, 2, 3, 3]), { bias: zeros([2]) }),
    /bias has shape \[2\]: needs \[1\] or \[1, 2, 2\]/,
  ],
  ['graphConv', () => pg.graphConv(zeros([3, 2]), zeros([2, 2]), zeros([2, 1])), /adjacency.*\[2, 2\].*3, 3/],
  ['graphConv', () => pg.graphConv(zeros([3, 2]), zeros([3, 3]), zeros([3, 1])), /\[3, 2\] and weight \[3, 1\]/],
  ['graphConv', () => pg.graphConv(zeros([3]), zeros([3, 3]), zeros([3, 1])), /features do not fit/],
  [
    'graphConv',
    () => pg.graphConv(zeros([3, 2]), zeros([3, 3]), zeros([2, 1]), { normalize: 'rows' as never }),
    /'rows'.*'symmetric'/,
  ],
  [
    'graphConv',
    () => pg.graphConv(zeros([3, 2]), { sources: zeros([2]), targets: zeros([2]) }, zeros([2, 1])),
    /have dtype float32 and shape \[.*\]: need integers/,
  ],
  [
    'graphConv',
    () =>
      pg.graphConv(
        zeros([3, 2]),
        { sources: pg.arange(2, { dtype: 'int32' }), targets: pg.arange(3, { dtype: 'int32' }) },
        zeros([2, 1]),
      ),
    /sources \[2\] and targets \[3\]/,
  ],
  ['maxPool2d', () => pg.maxPool2d(image(), 5), /window too large: 5 .* has 4/],
  ['maxPool2d', () => pg.maxPool2d(zeros([4, 4]), 2), /2 axes: needs 4/],
  ['maxPool2d', () => pg.maxPool2d(image(), 2, { padding: 2 }), /padding too large: 2 for a window over 2/],
  ['maxPool2d', () => pg.maxPool2d(image(), [2, 2, 2]), /kernelSize: 3 for 2 axes/],
  ['maxPool2d', () => pg.maxPool2d(image(), 0), /bad kernelSize: 0/],
  ['maxPool2d', () => pg.maxPool2d(image(), 2, { layout: 'nwhc' as never }), /'nwhc'/],
  ['avgPool3d', () => pg.avgPool3d(image(), 2), /4 axes: needs 5/],
  ['lpPool2d', () => pg.lpPool2d(image(), 0.5, 2), /bad order: 0.5/],
  ['lpPool2d', () => pg.lpPool2d(image(), Number.POSITIVE_INFINITY, 2), /maxPool2d/],
  ['adaptiveAvgPool2d', () => pg.adaptiveAvgPool2d(image(), 0), /bad size: 0/],
  ['adaptiveAvgPool2d', () => pg.adaptiveAvgPool2d(image(), [2]), /1 for 2 axes/],
  ['adaptiveMaxPool2d', () => pg.adaptiveMaxPool2d(zeros([1, 1, 0, 2]), 1), /nothing to pool/],
  ['adaptiveAvgPool1d', () => pg.adaptiveAvgPool1d(image(), 1), /4 axes: needs 3/],
  ['globalAvgPool2d', () => pg.globalAvgPool2d(zeros([2, 3])), /2 axes: needs 4/],
  [
    'maxUnpool2d',
    () => pg.maxUnpool2d(image(), zeros([1, 2, 4, 3], { dtype: 'int32' }), 2),
    /x \[1, 2, 4, 4\] and indices \[1, 2, 4, 3\]/,
  ],
  ['maxUnpool2d', () => pg.maxUnpool2d(image(), image(), 2), /indices have dtype float32/],
  [
    'maxUnpool2d',
    () => pg.maxUnpool2d(image(), zeros([1, 2, 4, 4], { dtype: 'int32' }), 2, { outputSize: [8, 12] }),
    /bad outputSize: 12 .*from 7 to 9/,
  ],
  ['batchNorm', () => pg.batchNorm(image(), { training: true, weight: zeros([3]) }), /weight has shape \[3\].*2/],
  ['batchNorm', () => pg.batchNorm(image(), { training: true, layout: 'x' as never }), /'x'/],
  [
    'batchNorm',
    () => pg.batchNorm(image(), { runningMean: zeros([3]), runningVar: zeros([3]) }),
    /running statistics have shape \[3\]: needs \[2\]/,
  ],
  ['batchNorm', () => pg.batchNorm(image(), { training: true, eps: -1 }), /bad eps: -1/],
  ['layerNorm', () => pg.layerNorm(zeros([2, 3]), { normalizedShape: [2] }), /\[2\].*\[2, 3\]/],
  ['rmsNorm', () => pg.rmsNorm(zeros([2, 3]), { eps: Number.NaN }), /bad eps: NaN/],
  ['groupNorm', () => pg.groupNorm(zeros([2, 3]), { groups: 2 }), /3 channels .* in 2 groups/],
  ['groupNorm', () => pg.groupNorm(zeros([2, 4, 3]), { groups: 2, layout: 'nhwc' }), /3 channels .* in 2 groups/],
  ['instanceNorm', () => pg.instanceNorm(zeros([3])), /1 axes: needs at least 2/],
  ['localResponseNorm', () => pg.localResponseNorm(image(), { size: 0 }), /bad size: 0/],
  ['localResponseNorm', () => pg.localResponseNorm(image(), { size: 2 ** 31 }), /too many elements/],
  ['localResponseNorm', () => pg.localResponseNorm(zeros([3]), { size: 2 }), /1 axes: needs at least 2/],
  ['dropout', () => pg.dropout(zeros([3]), { p: 1.5 }), /bad probability: 1.5/],
];

describe('refused', () => {
  refusedCalls(bad);
});
