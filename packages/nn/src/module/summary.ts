/** summary: a network's modules with the shapes of their results, their parameters and bytes, without computing anything. */
import { type DType, isTensor, noGrad, scope, type Tensor, zeros } from '@polygrad/core/functions';
import { checkInteger, checkList, checkOptions } from '../errors.ts';
import { forwardHook } from './hooks.ts';
import { type AnyModule, checkModule, type Module } from './module.ts';

/** One module that was called. */
export interface SummaryRow {
  /** Path of the module, '' for the network itself. */
  readonly name: string;
  /** Its class. */
  readonly kind: string;
  /** Shapes of the tensors in its result. */
  readonly shapes: readonly (readonly number[])[];
  /** Numbers in its own parameters, without those of modules inside it. */
  readonly parameters: number;
  /** Bytes of its results. */
  readonly bytes: number;
}

/** What `summary` finds. */
export interface Summary {
  /** Modules in the order of `namedModules`; those that were not called are left out. */
  readonly rows: readonly SummaryRow[];
  /** Numbers in all parameters, each once. */
  readonly parameters: number;
  /** Those of them that have a gradient. */
  readonly trainable: number;
  /** Bytes of parameters and buffers. */
  readonly stateBytes: number;
  /** Bytes of the results of modules that have none inside: what a forward pass keeps for gradients, about. */
  readonly resultBytes: number;
  /** A table of all this. */
  toString(): string;
}

/** Options of `summary`. */
export interface SummaryOptions {
  /** Dtype of the inputs (default float32); an integer one for embeddings. */
  readonly dtype?: DType;
}

/** Bytes of one element: what a dtype's name says; truth values have one. */
const bytesOf = (dtype: DType): number => Number(/\d+$/.exec(dtype)?.[0] ?? 8) / 8;

const sizeOf = (tensors: readonly Tensor[]): number =>
  tensors.reduce((sum, { size, dtype }) => sum + size * bytesOf(dtype), 0);

/** Tensors in a result: itself, or entries of a list or an object. */
function tensorsIn(value: unknown): Tensor[] {
  if (isTensor(value)) return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).filter((entry) => isTensor(entry)) : [];
}

function table({ rows, parameters, trainable, stateBytes, resultBytes }: Omit<Summary, 'toString'>): string {
  const lines = [
    ['module', 'kind', 'result', 'parameters', 'bytes'],
    ...rows.map(({ name, kind, shapes, parameters: own, bytes }) => [
      name === '' ? '(network)' : name,
      kind,
      shapes.map((shape) => `[${shape.join(', ')}]`).join(' '),
      String(own),
      String(bytes),
    ]),
  ];
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const text = lines.map((line) =>
    line
      .map((cell, i) => (i < 3 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join('  ')
      .trimEnd(),
  );
  const total = `${parameters} parameters (${trainable} trainable), ${stateBytes} bytes; results: ${resultBytes} bytes`;
  return [...text, total].join('\n');
}

/**
 * A network's modules with the shapes of their results, their parameters and bytes. The network is called once in evaluation with zeros, and nothing is
 * computed: shapes are known without.
 *
 * @param model what to call
 * @param shape of its input, or shapes of several inputs
 * @param options dtype of the inputs
 * @returns rows and sums; as text, a table
 * @throws what the network throws for such inputs
 * @example
 * const found = summary(new Sequential(new Linear(4, 8), new ReLU(), new Linear(8, 2)), [1, 4]);
 * found.parameters; // 58
 * found.rows.map(({ name, shapes }) => [name, ...shapes]); // [['', [1, 2]], ['0', [1, 8]], ['1', [1, 8]], ['2', [1, 2]]]
 */
export function summary(
  model: AnyModule,
  shape: readonly number[] | readonly (readonly number[])[],
  options: SummaryOptions = {},
): Summary {
  checkModule('summary', model);
  checkList('summary', 'shape', shape);
  checkOptions('summary', options, 'dtype');
  const shapes = (typeof shape[0] === 'number' || shape.length === 0 ? [shape] : shape) as readonly number[][];
  for (const one of shapes) {
    checkList('summary', 'shape', one);
    for (const extent of one) checkInteger('summary', 'shape', extent, 0);
  }
  const { dtype = 'float32' } = options;
  const modules = new Map<AnyModule, string>();
  for (const [name, module] of model.namedModules()) if (!modules.has(module)) modules.set(module, name);
  const found = new Map<AnyModule, SummaryRow & { readonly isLeaf: boolean }>();
  const modes = [...modules.keys()].map((module) => [module, module.training] as const);
  const removers = [...modules].map(([module, name]) => {
    const own = [...new Set(Object.values(module).filter((value) => isTensor(value)))];
    const inside = module.namedModules().length > 1;
    return forwardHook(module as unknown as Module<unknown[], unknown>, (output) => {
      if (found.has(module)) return;
      const tensors = tensorsIn(output);
      const learned = model.parameters();
      found.set(module, {
        name,
        kind: module.constructor.name,
        shapes: tensors.map((t) => t.shape),
        parameters: own.filter((t) => learned.includes(t)).reduce((count, { size }) => count + size, 0),
        bytes: sizeOf(tensors),
        isLeaf: !inside,
      });
    });
  });
  try {
    model.eval();
    scope(() => {
      noGrad(() => {
        const inputs = shapes.map((one) => zeros(one, { dtype }));
        (model as unknown as { forward(...inputs: Tensor[]): unknown }).forward(...inputs);
      });
    });
  } finally {
    for (const remove of removers) remove();
    for (const [module, mode] of modes) module.training = mode;
  }
  const parameters = model.parameters();
  const order = [...modules.keys()].filter((module) => found.has(module));
  const rows = order.map((module) => found.get(module)!);
  const result = {
    rows: rows.map(({ isLeaf: _, ...row }) => row),
    parameters: model.parameterCount(),
    trainable: parameters.filter((t) => t.requiresGrad).reduce((count, { size }) => count + size, 0),
    stateBytes: sizeOf([...new Set(Object.values(model.stateDict()))]),
    resultBytes: rows.filter(({ isLeaf }) => isLeaf).reduce((sum, { bytes }) => sum + bytes, 0),
  };
  return { ...result, toString: () => table(result) };
}
