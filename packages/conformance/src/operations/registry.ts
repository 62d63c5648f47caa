/** The registry of operations: one row each, by families. The suites, the random programs and docs/operations.md are made from it. */
import { attentionRows } from './attention/attention.ts';
import { tableRows } from './attention/tables.ts';
import { convolutionRows } from './convolutions/convolutions.ts';
import { graphRows } from './convolutions/graph.ts';
import { creationRows } from './creation/creation.ts';
import { randomRows } from './creation/random.ts';
import { elementwiseRows } from './elementwise/derive.ts';
import { adaptivePoolingRows } from './images/adaptive-pooling.ts';
import { poolingRows } from './images/pooling.ts';
import { samplingRows } from './images/sampling.ts';
import { coordinateRows } from './indexing/coordinates.ts';
import { pickingRows } from './indexing/picking.ts';
import { scatteringRows } from './indexing/scattering.ts';
import { quantileRows } from './lines/quantiles.ts';
import { runningRows } from './lines/running.ts';
import { searchingRows } from './lines/searching.ts';
import { softmaxRows } from './lines/softmax.ts';
import { sortingRows } from './lines/sorting.ts';
import { classLossRows } from './losses/classes.ts';
import { gaussianRows } from './losses/gaussian.ts';
import { marginLossRows } from './losses/margins.ts';
import { pairLossRows } from './losses/pairs.ts';
import { vectorLossRows } from './losses/rows-of-vectors.ts';
import { axisRows } from './movement/axes.ts';
import { diagonalRows } from './movement/diagonals.ts';
import { joinRows } from './movement/joins.ts';
import { padRows } from './movement/pad.ts';
import { partRows } from './movement/parts.ts';
import { patchRows } from './movement/patches.ts';
import { repeatRows } from './movement/repeats.ts';
import { reshapeRows } from './movement/reshape.ts';
import { channelNormRows } from './normalization/channels.ts';
import { layerNormRows } from './normalization/layers.ts';
import { distanceRows } from './products/distance.ts';
import { einsumRows } from './products/einsum.ts';
import { matrixRows } from './products/matrices.ts';
import { vectorRows } from './products/vectors.ts';
import { reductionRows } from './reductions/reductions.ts';
import type { OperationRow } from './row.ts';

export type FamilyName =
  | 'creation'
  | 'elementwise'
  | 'reductions'
  | 'lines'
  | 'movement'
  | 'indexing'
  | 'products'
  | 'convolutions'
  | 'images'
  | 'normalization'
  | 'losses'
  | 'attention';

export const families: Readonly<Record<FamilyName, readonly OperationRow[]>> = {
  creation: [...creationRows, ...randomRows],
  elementwise: elementwiseRows,
  reductions: reductionRows,
  lines: [...runningRows, ...sortingRows, ...quantileRows, ...searchingRows, ...softmaxRows],
  movement: [
    ...reshapeRows,
    ...axisRows,
    ...partRows,
    ...padRows,
    ...repeatRows,
    ...diagonalRows,
    ...joinRows,
    ...patchRows,
  ],
  indexing: [...pickingRows, ...coordinateRows, ...scatteringRows],
  products: [...matrixRows, ...vectorRows, ...einsumRows, ...distanceRows],
  convolutions: [...convolutionRows, ...graphRows],
  images: [...poolingRows, ...adaptivePoolingRows, ...samplingRows],
  normalization: [...channelNormRows, ...layerNormRows],
  losses: [...pairLossRows, ...gaussianRows, ...classLossRows, ...vectorLossRows, ...marginLossRows],
  attention: [...attentionRows, ...tableRows],
};

export const operations: readonly OperationRow[] = Object.values(families).flat();
