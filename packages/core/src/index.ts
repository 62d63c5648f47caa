/** Entry point @polygrad/core: tensors, operations as functions and as methods, gradients, engines. Names are added in functions.ts. */
import './tensor/methods.ts';

export * from './functions.ts';
