/**
 * Calls with one argument changed to something that may be wrong. Each is either refused at the call, in the words of the library, or gives
 * what it gives on the reference engine. Either way it leaves nothing behind.
 */
import * as pg from '@polygrad/core';
import * as numbers from '@polygrad/numbers';
import type { IEngine } from '@polygrad/core/engine';
import {
  callDifference,
  type Called,
  type CallTable,
  callTable,
  callText,
  createReferenceEngine,
  hostCall,
  type Outcome,
  outcomeOf,
  performed,
  refusalComplaint,
  type RightCall,
  untold,
} from '@polygrad/testing';
import { defaultTolerances } from '../compare.ts';
import { aliveHere, leavingNothing, settled } from './check.ts';
import type { Choices } from '../programs/choices.ts';
import { drawFromProgram, drawFromTable, type DrawnCall, type ProgramCall } from './draw-call.ts';
import { bound, type Handles, record } from './execute.ts';
import { everyDType } from './generate.ts';
import { type Arg, printProgram, type Program } from '../programs/program.ts';

const functions = pg as unknown as Readonly<Record<string, Called>>;

/** What an engine may refuse that another one takes. */
const isLimit = (error: Error): boolean => error instanceof pg.OutOfMemoryError || error instanceof pg.UnsupportedError;

export interface CallFuzzOptions {
  /** Roundings are so many times those of float arithmetic (functions of GPUs). */
  readonly scale?: number;
  /** Called with every call, and what comes before it, as TypeScript, before it is made. */
  readonly told?: (text: string) => void;
}

/** Checks changed calls on one engine, and counts. */
export class CallFuzz {
  readonly engine: IEngine;
  /** Calls of each function. */
  readonly made: Map<string, number> = new Map();
  /** Functions of which a call was accepted. */
  readonly valid: Set<string> = new Set();
  /** Accepted calls whose results were compared with those of the reference engine. */
  compared: number = 0;
  refused: number = 0;
  readonly table: CallTable;
  readonly #reference: IEngine;
  readonly #scale: number;
  readonly #told: (text: string) => void;

  private constructor(
    engine: IEngine,
    reference: IEngine,
    table: CallTable,
    { scale = 1, told = () => undefined }: CallFuzzOptions,
  ) {
    this.engine = engine;
    this.#reference = reference;
    this.table = table;
    this.#scale = scale;
    this.#told = told;
  }

  /** Makes the table of right calls and sets the engine. */
  static async create(engine: IEngine, options: CallFuzzOptions = {}): Promise<CallFuzz> {
    const reference = createReferenceEngine();
    await pg.setEngine(reference);
    const table = await callTable({ ...pg, ...numbers });
    await pg.setEngine(engine);
    return new CallFuzz(engine, reference, table, options);
  }

  #function(name: string): Called {
    return this.table.get(name)?.f ?? functions[name]!;
  }

  /**
   * Makes the right call of every function. Throws with those that are refused, or come to something else than on the reference engine.
   * A call that names a dtype which the engine does not hold is refused rightly.
   */
  async checkRightCalls(): Promise<void> {
    const unheld = new Set<unknown>(everyDType.filter((dtype) => !this.engine.caps.dtypes.has(dtype)));
    const wrong: string[] = [];
    for (const { name, right } of this.table.values()) {
      try {
        const outcome = await this.#checkTabled({ name, call: right, text: callText(name, right) });
        if (this.valid.has(name)) continue;
        if (!(right.args.some((arg) => unheld.has(arg)) && outcome.refused instanceof pg.UnsupportedError))
          wrong.push(`the right call of ${name} is refused: ${outcome.refused?.message}`);
      } catch (error) {
        wrong.push(String((error as Error).message));
      }
    }
    if (wrong.length > 0) throw new Error(wrong.join('\n'));
  }

  /** Checks one changed call: of the program, or of the table. */
  async check(program: Program, c: Choices): Promise<void> {
    if (c.nat(2) === 1) {
      await this.#checkTabled(drawFromTable(this.table, c));
      return;
    }
    const drawn = drawFromProgram(program, this.table, c);
    if (drawn !== null) await this.#checkInProgram(drawn);
  }

  async #checkTabled(drawn: DrawnCall): Promise<Outcome> {
    const explain = (what: string): Error => new Error(`${what}\n${drawn.text}`);
    this.#told(drawn.text);
    const made = (): Promise<Outcome> =>
      this.#made(drawn.name, () => outcomeOf(this.#function(drawn.name), drawn.call), explain);
    const outcome = await leavingNothing(made, { explain });
    await this.#compare(drawn.name, outcome, drawn.call, explain);
    return outcome;
  }

  async #checkInProgram({ name, call, text, steps }: ProgramCall): Promise<void> {
    const whole = `${text} // after\n${printProgram({ steps, outputs: [], scoped: false })}`;
    const explain = (what: string): Error => new Error(`${what}\n${whole}`);
    this.#told(whole);
    await leavingNothing(
      async () => {
        const handles: Handles = new Map();
        try {
          for (const step of steps) record(step, handles);
          await settled();
          const args = { args: call.args.map((arg) => bound(arg as Arg, handles)), next: null };
          const made = (): Promise<Outcome> => this.#made(name, () => performed(this.#function(name), args), explain);
          const outcome = await leavingNothing(made, { count: aliveHere, explain });
          // An index of data, or of a tensor of one number, is known when the call is recorded. One that was computed is not, so it is not refused.
          if (outcome.refused === null) await this.#compare(name, outcome, await hostCall(args, true), explain);
        } finally {
          for (const t of handles.values()) t.dispose();
        }
      },
      { explain },
    );
  }

  /** The outcome of a call. Throws if it is refused with an error that is not the library's. */
  async #made(name: string, call: () => Promise<Outcome>, explain: (what: string) => Error): Promise<Outcome> {
    this.made.set(name, (this.made.get(name) ?? 0) + 1);
    let outcome: Outcome;
    try {
      outcome = await call();
    } catch (error) {
      throw explain(`not an error of the library: ${(error as Error)?.stack ?? String(error)}`);
    }
    const { refused, byUser } = outcome;
    if (refused === null) this.valid.add(name);
    else this.refused++;
    const complaint = refused === null || byUser ? null : refusalComplaint(name, refused);
    if (complaint !== null) throw explain(`refused in other words: ${complaint}`);
    return outcome;
  }

  /** Throws unless the call, whose tensors are data, comes to the same on the reference engine. */
  async #compare(name: string, outcome: Outcome, call: RightCall, explain: (what: string) => Error): Promise<void> {
    if (Object.hasOwn(untold, name) || (outcome.refused !== null && isLimit(outcome.refused))) return;
    await pg.setEngine(this.#reference);
    try {
      const options = { tolerances: defaultTolerances.forward, scale: this.#scale };
      const found = await callDifference(this.#function(name), call, outcome, options).catch((error: unknown) => {
        throw explain(
          `not an error of the library, on the reference engine: ${(error as Error)?.stack ?? String(error)}`,
        );
      });
      if (found !== null) throw explain(`differs from the reference engine: ${found}`);
      if (outcome.refused === null) this.compared++;
    } finally {
      await pg.setEngine(this.engine);
    }
  }
}
