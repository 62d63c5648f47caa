/** Orthogonal first values. A file of its own: they bring the factorisation QR of the core package, which pages without them leave out. */
import {
  cast,
  diagonal,
  type DType,
  less,
  mul,
  randn,
  reshape,
  scope,
  type Tensor,
  transpose,
  where,
} from '@polygrad/core/functions';
import { qr } from '@polygrad/core/linear-algebra';
import { checkNumber, NnError } from '../errors.ts';
import { checkShape, type Initializer } from './init.ts';

/**
 * A matrix with orthonormal rows, or columns where it has more rows than columns, times a gain; each such matrix is as likely as every other.
 * Further axes count with the second, as those of a convolution's kernel. Sources: Saxe, McClelland and Ganguli, "Exact solutions to the
 * nonlinear dynamics of learning in deep linear neural networks", 2014; PyTorch `torch.nn.init.orthogonal_`.
 *
 * @throws NnError unless the gain is a finite number; later for shapes of fewer than two axes
 * @example
 * new Linear(3, 2, { weightInit: orthogonalInit(gainOf('tanh')) }).weight.shape; // [2, 3]
 */
export function orthogonalInit(gain: number = 1): Initializer {
  checkNumber('orthogonalInit', 'gain', gain);
  return (shape, dtype: DType = 'float32') => {
    checkShape('orthogonalInit', shape);
    if (shape.length < 2)
      throw new NnError('orthogonalInit', `shape (${shape.join(', ')}) is no matrix; it needs at least two axes`);
    const rows = shape[0]!;
    const columns = shape.slice(1).reduce((product, extent) => product * extent, 1);
    const working = dtype === 'float64' ? dtype : 'float32';
    return scope((): Tensor => {
      const { q, r } = qr(randn([Math.max(rows, columns), Math.min(rows, columns)], { dtype: working }));
      // Signs of the diagonal make the factors unique, and the draw uniform.
      const signed = mul(q, where(less(diagonal(r), 0), -gain, gain));
      const made = reshape(rows < columns ? transpose(signed) : signed, shape);
      return dtype === working ? made : cast(made, dtype);
    });
  };
}
