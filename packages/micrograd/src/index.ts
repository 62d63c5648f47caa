/** Entry point @polygrad/micrograd: automatic differentiation to learn from. */
export { type Operand, sumOf, Value } from './value.ts';
export { toDot, toSvg } from './draw.ts';
export { cpu, type Device, gpu, type Matrix } from './device.ts';
export { type Activation, Layer, MLP, Neuron } from './network.ts';
