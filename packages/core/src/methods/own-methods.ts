/**
 * Methods that every Tensor has, whatever a bundle leaves out: those without a function of the same name (reading back, backward), and the
 * four of arithmetic, in which formulas are read best and which hardly any program goes without.
 *
 * Importing this file puts them in place: a side effect (named in package.json). Every entry point does.
 */
import { putHelp } from '#help';
import { backward } from '../autodiff/backward.ts';
import { add, div, mul, sub } from '../ops/arithmetic.ts';
import { TensorHandle } from '../tensor/handle.ts';
import {
  deviceOf,
  printTensor,
  readArray,
  readArraySync,
  readData,
  readDataSync,
  readItem,
  readItemSync,
} from '../tensor/reading.ts';
import type { Tensor } from '../tensor/types.ts';
import type { ArithmeticMethods } from './arithmetic.ts';
import type { Operations, OwnOperation } from './method-types.ts';

declare module '../tensor/types.ts' {
  interface TensorOperations extends Pick<ArithmeticMethods, OwnOperation>, Operations {}
}

type OwnMethods = Pick<
  Tensor,
  | 'data'
  | 'array'
  | 'item'
  | 'dataSync'
  | 'arraySync'
  | 'itemSync'
  | 'print'
  | 'device'
  | 'backward'
  | 'add'
  | 'sub'
  | 'mul'
  | 'div'
>;

const own: OwnMethods & ThisType<Tensor> = {
  get device() {
    return deviceOf(this);
  },
  data() {
    return readData(this);
  },
  array() {
    return readArray(this);
  },
  item<T extends number | bigint = number>() {
    return readItem<T>(this);
  },
  dataSync() {
    return readDataSync(this);
  },
  arraySync() {
    return readArraySync(this);
  },
  itemSync<T extends number | bigint = number>() {
    return readItemSync<T>(this);
  },
  print() {
    return printTensor(this);
  },
  backward(options) {
    backward(this, options);
  },
  add(b) {
    return add(this, b);
  },
  sub(b) {
    return sub(this, b);
  },
  mul(b) {
    return mul(this, b);
  },
  div(b) {
    return div(this, b);
  },
};

/** Makes functions methods of all Tensors. */
export function putOnTensors(methods: object): void {
  for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(methods))) {
    Object.defineProperty(TensorHandle.prototype, name, { ...descriptor, enumerable: false });
  }
}

putHelp(TensorHandle.prototype);
putOnTensors(own);
