/**
 * Entry point @polygrad/core/linear-algebra: factors of matrices, and equations with them. Pages that do not import it carry none of
 * it.
 */
export { det, inv, slogDet, solve } from './elimination.ts';
export { lstsq, qr, type QROptions } from './qr.ts';
export {
  type Eigen,
  eigh,
  type EighOptions,
  matrixRank,
  pinv,
  type RankOptions,
  svd,
  type Svd,
  type SvdOptions,
} from './spectral.ts';
export { cholesky, type CholeskyOptions, triangularSolve, type TriangularOptions } from './triangular.ts';
