/** What `profile` hands out: objects that JSON and consoles show as figures, with programs and texts of kernels on request alone. */
import type { KernelSource } from '../engine/engine.ts';
import type { Program } from '../ir/ir.ts';
import { showAs } from '../shape/shown-as.ts';
import type { KernelRun, Profile } from './profile.ts';

/** The figures of a kernel, which everybody may enumerate; the program and its text are behind getters. */
type Figures = Omit<KernelRun, 'program' | 'source'>;

class Run {
  readonly #program: Program;
  readonly #source: KernelSource | null;

  constructor(figures: Figures, program: Program, source: KernelSource | null) {
    Object.assign(this, figures);
    this.#program = program;
    this.#source = source;
  }

  get program(): Program {
    return this.#program;
  }

  get source(): KernelSource | null {
    return this.#source;
  }
}

/** A kernel of a profile. */
export function kernelRun(figures: Figures, program: Program, source: KernelSource | null): KernelRun {
  return new Run(figures, program, source) as unknown as KernelRun;
}

/** Most kernels that the console shows. */
const mostRows = 40;

/** Few digits: times and sizes side by side are read, not computed with. */
function short(value: number): string {
  return value >= 1000 ? value.toFixed(0) : value.toPrecision(3);
}

function plural(count: number, word: string, end: string): string {
  return `${count} ${word}${count === 1 ? '' : end}`;
}

/** A profile as lines of text: what was done in all, and a row for each kernel. */
function tableOf({ kernels, submits, newPlans, milliseconds }: Profile<unknown>): string {
  const head = `Profile: ${plural(kernels.length, 'kernel', 's')} in ${plural(submits, 'batch', 'es')}, ${plural(newPlans, 'new plan', 's')}, ${short(milliseconds)} ms`;
  if (kernels.length === 0) return head;
  const rows = kernels
    .slice(0, mostRows)
    .map((k) => [
      k.milliseconds === null ? '-' : short(k.milliseconds),
      short(k.flops / 1e6),
      short(k.bytes / 1e6),
      String(k.submit),
      k.engine,
      k.name,
    ]);
  const table = [['ms', 'Mflop', 'MB', 'batch', 'engine', 'kernel'], ...rows];
  const widths = (table[0] as string[]).map((_, i) => Math.max(...table.map((row) => (row[i] as string).length)));
  const lines = table.map((row) =>
    row.map((text, i) => (i < 4 ? text.padStart(widths[i] as number) : text.padEnd(widths[i] as number))).join('  '),
  );
  const left = kernels.length - rows.length;
  return [head, ...lines, ...(left > 0 ? [`... and ${left} more in .kernels`] : [])]
    .map((line) => line.trimEnd())
    .join('\n  ');
}

/** A profile whose JSON has the figures, and the texts that were asked for; what the function returned is not in it. */
export function showProfile<T>(profile: Profile<T>): Profile<T> {
  return showAs(
    profile,
    ({ kernels, submits, newPlans, milliseconds }) => ({
      kernels: kernels.map((run) => (run.source === null ? run : { ...run, source: run.source })),
      submits,
      newPlans,
      milliseconds,
    }),
    tableOf,
  );
}
