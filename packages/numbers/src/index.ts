/** Entry point @polygrad/numbers: integers of any size, decimals and numbers of your own, in arrays on the host. */
export {
  concatNumbers,
  fromTensor,
  type NestedNumbers,
  numberEye,
  numberFull,
  numberTensor,
  stackNumbers,
  toTensor,
} from './creation.ts';
export { NumberTensor, type NumberOperand } from './number-tensor.ts';
export {
  defineNumberType,
  type NumberLike,
  type NumberType,
  NumberTypeError,
  type NumberTypeOptions,
} from './number-type.ts';
export {
  bigintType,
  booleanType,
  type DecimalClass,
  type DecimalLike,
  decimalType,
  numberType,
} from './ready-made.ts';
