/** explainPlacement: which engine would compute what, the estimated cost on each, and the reason. */
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkFunction } from '@polygrad/compiler/shape/options';
import { runs } from '../runtime/state.ts';
import { rehearse } from '../tensor/scope.ts';
import { showAs } from '#shown-as';
import { never, type PlacementPolicy } from './decide.ts';
import { EnginePlacer } from './placer.ts';
import { familyOf } from './costs.ts';

/** Estimated milliseconds on an engine; null if it cannot do the work. */
export interface EngineEstimate {
  readonly engine: string;
  readonly compute: number | null;
  /** Transfers of missing data. */
  readonly transfer: number;
}

/** A part of the work: nodes that share work, and are placed together unless the policy divides them. */
export interface PlacedPart {
  /** Primitives that are work, with their number: `dotGeneral, add x2`. */
  readonly operations: string;
  /** Name of the engine; of both for a divided part. */
  readonly engine: string;
  readonly estimates: readonly EngineEstimate[];
  readonly reason: string;
}

/** Result of `explainPlacement`. The console shows a table. */
export interface PlacementReport {
  readonly policy: PlacementPolicy;
  /** True if the estimates come from measurements of `calibrate()`. */
  readonly measured: boolean;
  readonly parts: readonly PlacedPart[];
}

/**
 * Calls a function and says where the active `ExecutionContext` would compute each part of its work, without computing anything: what
 * the function assigns and makes is undone. It should not read values.
 *
 * @param fn a synchronous function, such as a training step
 * @throws ArgumentError if no context is active, inside `warmup`, and if the function returns a promise
 * @example
 * import { ExecutionContext, explainPlacement, rand } from '@polygrad/core';
 * import { createReferenceEngine } from '@polygrad/testing';
 * import '@polygrad/backend-cpu';
 * const device = createReferenceEngine({ name: 'gpu' });
 * await new ExecutionContext({ device }).run(() => {
 *   const { parts } = explainPlacement(() => rand([8, 8], { key: 1 }).matmul(rand([8, 8], { key: 2 })));
 *   console.log(parts[0]!.engine); //=> cpu
 * });
 */
export function explainPlacement(fn: () => unknown): PlacementReport {
  checkFunction('explainPlacement', fn);
  const { placer } = runs;
  if (!(placer instanceof EnginePlacer) || placer.rules === null)
    throw new ArgumentError(
      'explainPlacement',
      'no ExecutionContext is active; call it within context.run(), or after context.activate()',
    );
  const { policy, thresholds } = placer.rules;
  const parts: PlacedPart[] = [];
  rehearse('explainPlacement', fn, (wanted) => {
    const { parts: found, places } = placer.explain(wanted);
    for (const { nodes, place, costs, reason } of found) {
      const counts = new Map<string, number>();
      const engines = new Set<string>();
      for (const node of nodes) {
        if (familyOf(node) === null && node.op !== 'loop') continue;
        counts.set(node.op, (counts.get(node.op) ?? 0) + 1);
        engines.add(places[node.index]!.engine.name);
      }
      if (counts.size === 0) continue;
      parts.push({
        operations: [...counts].map(([op, count]) => (count === 1 ? op : `${op} x${count}`)).join(', '),
        engine: engines.size > 1 ? [...engines].join(' and ') : place.engine.name,
        estimates: [...costs].map(([{ engine }, { compute, transfer }]) => ({
          engine: engine.name,
          compute: compute >= never ? null : compute,
          transfer,
        })),
        reason,
      });
    }
  });
  const report: PlacementReport = { policy, measured: thresholds.measured, parts };
  return showAs(report, ({ policy, measured, parts }) => ({ policy, measured, parts }), tableOf);
}

const short = (value: number | null): string =>
  value === null ? 'cannot' : value >= 1000 ? value.toFixed(0) : value.toPrecision(3);

/** Most characters of a part's operations. */
const widest = 48;

/** The report as lines of text. */
function tableOf({ policy, measured, parts }: PlacementReport): string {
  const head = `Placement by policy '${policy}', costs ${measured ? 'measured' : 'assumed (calibrate() measures them)'}`;
  const engines = [...new Set(parts.flatMap(({ estimates }) => estimates.map(({ engine }) => engine)))];
  const clipped = (text: string): string => (text.length > widest ? `${text.slice(0, widest - 3)}...` : text);
  const rows = parts.map((part) => [
    clipped(part.operations),
    part.engine,
    ...engines.map((name) => {
      const found = part.estimates.find(({ engine }) => engine === name);
      return found === undefined ? '-' : `${short(found.compute)} + ${short(found.transfer)}`;
    }),
    part.reason,
  ]);
  const table = [['operations', 'engine', ...engines.map((name) => `ms on ${name} + transfers`), 'reason'], ...rows];
  const widths = table[0]!.map((_, i) => Math.max(...table.map((row) => row[i]!.length)));
  const lines = table.map((row) =>
    row
      .map((text, i) => text.padEnd(widths[i]!))
      .join('  ')
      .trimEnd(),
  );
  return [head, ...lines].join('\n  ');
}
