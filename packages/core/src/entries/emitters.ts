/** Entry point @polygrad/core/kernel/emitters: what emitters of source text ask of programs besides what `@polygrad/core/kernel` answers. */
export { divisorOf, identifier } from '@polygrad/compiler/ir/divisors';
export { foldedValues } from '@polygrad/compiler/ir/folding';
export { type DTypeInfo, dtypeInfo } from '@polygrad/compiler/shape/dtype';
