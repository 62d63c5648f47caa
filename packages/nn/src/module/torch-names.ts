/**
 * Names in checkpoints of PyTorch. Layers have PyTorch's names here, so most are the same. What differs is what wrappers put before them, and what
 * older checkpoints call the parameters of a norm. A name is only changed where the module does not have it and has the other.
 */

/** What `DataParallel`, `torch.compile` and Lightning's averaged models put before every name. */
const wrappers = /^(?:module|_orig_mod)\./;

/** Names that a norm's parameters had before `weight` and `bias`. */
const older: readonly (readonly [RegExp, string])[] = [
  [/(^|\.)gamma$/, '$1weight'],
  [/(^|\.)beta$/, '$1bias'],
];

/** A name without what wrappers put before it, at the beginning. */
function unwrapped(name: string): string {
  let rest = name;
  while (wrappers.test(rest)) rest = rest.replace(wrappers, '');
  return rest;
}

/**
 * The module's name for a name in a checkpoint of PyTorch, for `loadStateDict(state, { rename: torchNames })`. What wrappers put before it is off
 * (`module.` of DataParallel, `_orig_mod.` of torch.compile); `gamma` and `beta` of older norms are `weight` and `bias`.
 *
 * @param name the checkpoint's name
 * @param has true for names of the module
 * @example
 * torchNames('module.0.gamma', (name) => name === '0.weight'); // '0.weight'
 */
export function torchNames(name: string, has: (name: string) => boolean): string {
  const bare = unwrapped(name);
  const candidates = [name, bare, ...older.map(([pattern, now]) => bare.replace(pattern, now))];
  // What the module does not have at all keeps the wrapper off: messages then name what a reader looks for.
  return candidates.find(has) ?? bare;
}
