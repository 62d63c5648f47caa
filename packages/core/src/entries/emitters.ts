/** Entry point @polygrad/core/kernel/emitters: what emitters of source text ask of programs besides what `@polygrad/core/kernel` answers. */
export { divisorOf, identifier } from '../ir/divisors.ts';
export { foldedValues } from '../ir/folding.ts';
