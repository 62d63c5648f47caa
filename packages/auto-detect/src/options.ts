/** Options of the search: their allowed values, and a check for unknown names of backends. */
import {
  ArgumentError,
  checkFields,
  numberFrom,
  oneOf,
  type OptionRule,
  type OptionRules,
} from '@polygrad/core/engine';
import type { AutoDetectOptions } from './search.ts';
import { type BackendPackage, namesOf } from './packages.ts';

const op = 'autoDetectAndConfigureGpu';

const isName = (value: unknown): boolean => typeof value === 'string';
const names: OptionRule = [
  (value) => isName(value) || (Array.isArray(value) && value.every(isName)),
  "a name or a list of names, such as ['cpu']",
];
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);
const rules: OptionRules<AutoDetectOptions> = {
  timeout: [(value) => numberFrom(0)[0](value) && value !== 0, 'a number of milliseconds above 0'],
  prefer: names,
  require: names,
  only: names,
  exclude: names,
  engineOptions: [
    (value) => isObject(value) && Object.values(value as object).every((v) => v === undefined || isObject(v)),
    'an object of options by name, such as { cpu: { threads: 2 } }',
  ],
  measure: oneOf('automatic', 'load', 'anew', false),
  measureStore: [isObject, 'a store, such as memoryStore()'],
  selfTest: oneOf(true, false),
  plans: [(value) => typeof value === 'boolean' || isObject(value), 'true, false, or options of usePlanCache'],
  log: [(value) => value === null || typeof value === 'function', 'a function, or null'],
  onReport: [(value) => typeof value === 'function', 'a function'],
};

/** A name or a list of names as a list. */
export function namesOfList(given: string | readonly string[] = []): readonly string[] {
  return typeof given === 'string' ? [given] : given;
}

/** Throws ArgumentError for unknown options, values that do not fit, and unknown names of backends. */
export function checkDetectOptions(options: AutoDetectOptions, packages: readonly BackendPackage[]): void {
  checkFields(op, options, rules);
  const known = namesOf(packages);
  const { prefer, require, only, exclude, engineOptions = {} } = options;
  const given = { prefer, require, only, exclude, engineOptions: Object.keys(engineOptions) };
  for (const [option, list] of Object.entries(given))
    for (const name of namesOfList(list))
      if (!known.includes(name))
        throw new ArgumentError(op, `no backend '${name}' in ${option}; known are ${known.join(', ')}`);
  const left = namesOfList(require).filter(
    (name) => namesOfList(exclude).includes(name) || (only !== undefined && !namesOfList(only).includes(name)),
  );
  if (left.length > 0)
    throw new ArgumentError(
      op,
      `require names '${left[0]}', which ${namesOfList(exclude).includes(left[0]!) ? 'exclude names too' : 'only does not'}; change one of them`,
    );
}
