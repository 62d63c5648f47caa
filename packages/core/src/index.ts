/** Entry point @polygrad/core: tensors, operations as functions and as methods, gradients, engines. Names come from functions.ts. */
import './methods/methods.ts';

export * from './functions.ts';
