// fails: tensors of '@polygrad/core/functions' have no method reshape: call reshape(x, ...), or import '@polygrad/core' for methods
import { linspace, type Tensor } from '@polygrad/core/functions';

export const column: Tensor = linspace(0, 1, 4).reshape([4, 1]);
