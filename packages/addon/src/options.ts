/** Options that all engines of devices have: which device, how much of its memory, and what is measured on it. */
import {
  defaultStore,
  type EngineTuning,
  numberFrom,
  oneOf,
  type OptionRules,
  type TuningStore,
} from '@polygrad/core/engine';

/** The options; each engine documents them with words for its devices. */
export interface DeviceOptions {
  readonly device?: number | string;
  readonly memory?: number;
  readonly tuning?: 'automatic' | 'load' | false;
  readonly tuningStore?: TuningStore;
}

const [isIndex] = numberFrom(0, 2 ** 31, true);
const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

/**
 * Their rules; `devices` says what names a device.
 *
 * @example
 * const [isDevice, what] = deviceRules('the index of a card').device;
 * isDevice(-1); // false
 * what; // 'the index of a card'
 */
export function deviceRules(devices: string): OptionRules<DeviceOptions> {
  return {
    device: [(value: unknown) => isIndex(value) || isText(value), devices],
    memory: numberFrom(1),
    tuning: oneOf('automatic', 'load', false),
    tuningStore: [(value: unknown) => typeof value === 'object' && value !== null, 'a store, such as memoryStore()'],
  };
}

/**
 * The device wished for: the option, else what a variable of the environment names; numbers are indices.
 *
 * @example
 * namedDevice('a card', 'MY_DEVICE'); // 'a card'
 * process.env.MY_DEVICE = '1';
 * namedDevice(undefined, 'MY_DEVICE'); // 1
 */
export function namedDevice(option: number | string | undefined, variable: string): number | string | undefined {
  if (option !== undefined) return option;
  const text = process.env[variable];
  if (text === undefined || text === '') return undefined;
  // Longer ones may begin a UUID.
  return /^\d{1,4}$/.test(text) ? Number(text) : text;
}

/**
 * What is measured, and where it is kept; null: nothing.
 *
 * @example
 * tuningOf({ tuning: false }); // null
 */
export function tuningOf(
  { tuning, tuningStore }: DeviceOptions,
  standard: 'automatic' | 'load' = 'automatic',
): EngineTuning | null {
  const chosen = tuning ?? standard;
  return chosen === false ? null : { store: tuningStore ?? defaultStore(), automatic: chosen === 'automatic' };
}
