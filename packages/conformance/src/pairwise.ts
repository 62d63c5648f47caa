/**
 * Which cases of operations are run where not all are: those that visit every pair of an operation and a check in a dtype. They visit every instance
 * too: by its values, through a view, and by a derivative (idea: pairwise testing).
 *
 * A third of all cases does that. One of every third case visits 59 % of the pairs.
 */

/** What the checks of an instance look at; those that are not here compare the library with itself, and need no more than their pair. */
const kinds: Readonly<Record<string, 'values' | 'view' | 'derivative'>> = {
  plain: 'values',
  transposed: 'view',
  strided: 'view',
  flipped: 'view',
  gradient: 'derivative',
  forward: 'derivative',
  'gradient of gradient': 'derivative',
  'third derivative': 'derivative',
};

interface Part {
  readonly position: number;
  /** Dtype and check: with the operation, the pair. */
  readonly pair: string;
  readonly kind: string | undefined;
}

/**
 * Positions of the cases to run.
 *
 * @param names of all cases. 'operation / instance / dtype / check' is one of an operation; of the others every second one is taken
 */
export function pairwise(names: readonly string[]): ReadonlySet<number> {
  const operations = new Map<string, Map<string, Part[]>>();
  const chosen = new Set<number>();
  let others = 0;
  for (const [position, name] of names.entries()) {
    const words = name.split(' / ');
    const [operation, instance, dtype, check] = words as [string, string, string, string];
    if (words.length !== 4 || operation === 'goldens') {
      if (others++ % 2 === 0) chosen.add(position);
      continue;
    }
    const instances = operations.get(operation) ?? new Map<string, Part[]>();
    operations.set(operation, instances);
    const parts = instances.get(instance) ?? [];
    instances.set(instance, parts);
    parts.push({ position, pair: `${dtype} ${check}`, kind: kinds[check] });
  }
  for (const instances of operations.values()) choose([...instances.values()], chosen);
  return chosen;
}

/** Of each instance a part of each kind, whichever pair was rarest so far; then parts for pairs that no instance had. */
function choose(instances: readonly (readonly Part[])[], chosen: Set<number>): void {
  const times = new Map<string, number>();
  const count = ({ pair }: Part): number => times.get(pair) ?? 0;
  const take = (part: Part): void => {
    chosen.add(part.position);
    times.set(part.pair, count(part) + 1);
  };
  for (const parts of instances)
    for (const kind of new Set(Object.values(kinds))) {
      const own = parts.filter((part) => part.kind === kind);
      if (own.length > 0) take(own.reduce((rarest, part) => (count(part) < count(rarest) ? part : rarest)));
    }
  for (const part of instances.flat()) if (count(part) === 0) take(part);
}
