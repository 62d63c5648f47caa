/**
 * Whether the start of a batch may run twice: asked when the driver stopped in the middle for want of room, before the
 * library frees memory and submits the whole batch again.
 */
import type { Binding, Command } from '@polygrad/core/engine';

interface Region {
  readonly buffer: unknown;
  readonly from: number;
  readonly to: number;
}

const regionOf = ({ buffer, offset, bytes }: Binding): Region => ({ buffer, from: offset, to: offset + bytes });

/**
 * False if some command writes where an earlier one, or itself, read what was there before the batch.
 *
 * @example
 * const buffer = createReferenceEngine().alloc(8);
 * const copy: Command = { kind: 'copy', from: { buffer, offset: 0, bytes: 4 }, to: { buffer, offset: 4, bytes: 4 } };
 * isRepeatable([copy]); // true
 * isRepeatable([copy, { kind: 'fill', to: { buffer, offset: 0, bytes: 4 }, pattern: 0 }]); // false
 */
export function isRepeatable(commands: readonly Command[]): boolean {
  const written: Region[] = [];
  const given: Region[] = [];
  const isInside = (r: Region): boolean =>
    written.some((w) => w.buffer === r.buffer && w.from <= r.from && r.to <= w.to);
  const overlaps = (r: Region): boolean => given.some((g) => g.buffer === r.buffer && g.from < r.to && r.from < g.to);
  for (const command of commands) {
    const { reads, writes } = accesses(command);
    for (const region of reads) if (!isInside(region)) given.push(region);
    for (const region of writes) {
      if (overlaps(region)) return false;
      written.push(region);
    }
  }
  return true;
}

function accesses(command: Command): { reads: Region[]; writes: Region[] } {
  switch (command.kind) {
    case 'copy':
      return { reads: [regionOf(command.from)], writes: [regionOf(command.to)] };
    case 'fill':
      return { reads: [], writes: [regionOf(command.to)] };
    case 'dispatch': {
      const of = (accepted: readonly string[]): Region[] =>
        command.kernel.program.params
          .filter((p) => accepted.includes(p.arg.access))
          .map((p) => regionOf(command.bindings[p.arg.slot]!));
      return { reads: of(['read', 'readwrite']), writes: of(['write', 'readwrite']) };
    }
    default:
      return command satisfies never;
  }
}
