// What needs no methods passes the type checker.
import { add, linspace, reshape, type Tensor, type TensorLike } from '@polygrad/core/functions';

export const column: Tensor = reshape(linspace(0, 1, 4), [4, 1]).add(1);
export const twice = (x: TensorLike): Tensor => add(x, x);
export const values: Promise<ArrayLike<number | bigint>> = twice(column).data();
