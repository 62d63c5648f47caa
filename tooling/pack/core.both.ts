// A program that imports both entries has methods everywhere, as it does when it runs.
import { sum, type Tensor } from '@polygrad/core';
import { linspace } from '@polygrad/core/functions';

export const total: Tensor = sum(linspace(0, 1, 4).reshape([4, 1])).relu();
