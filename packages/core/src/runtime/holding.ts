/** Which engine holds which dtypes: the current one, or else the CPU engine. */
import type { IEngine } from '../engine/engine.ts';
import { EngineMissingError, UnsupportedError } from '../engine/errors.ts';
import { cpuEngine, getEngine } from '../engine/registry.ts';
import type { Node } from '../graph/node.ts';
import type { DType } from '../shape/dtype.ts';

/** True if the engine holds a node's dtype and those of all it is computed from. */
export function holds(engine: IEngine, node: Node): boolean {
  const { dtypes } = engine.caps;
  return dtypes.has(node.dtype) && node.src.every((source) => dtypes.has(source.dtype));
}

/** Numbers and positions: part of whatever kernel uses them. */
export function isFree(node: Node): boolean {
  return node.src.length === 0 && node.op !== 'buffer';
}

/** The engine that holds a dtype: the current one, or the CPU engine. Throws where there is none, or none yet. */
export function engineFor(where: string, dtype: DType): IEngine {
  const current = getEngine();
  if (current.caps.dtypes.has(dtype)) return current;
  const cpu = cpuEngine();
  if (cpu !== null && 'then' in cpu) {
    throw new EngineMissingError(
      where,
      `engine '${current.name}' does not hold ${dtype}, and the cpu engine, which does, is still starting; call await setEngine('cpu') once before setEngine('${current.name}')`,
    );
  }
  if (cpu === null) throw noCpu(where, dtype, current);
  if (!cpu.caps.dtypes.has(dtype)) throw heldByNobody(where, dtype, current, cpu);
  return cpu;
}

export function noCpu(where: string, dtype: DType, current: IEngine): EngineMissingError {
  return new EngineMissingError(
    where,
    `engine '${current.name}' does not hold ${dtype}, only ${[...current.caps.dtypes].join(', ')}, and no cpu engine is there to hold it; ` +
      `import '@polygrad/backend-cpu', or cast to a dtype that '${current.name}' holds`,
  );
}

export function heldByNobody(where: string, dtype: DType, current: IEngine, cpu: IEngine): UnsupportedError {
  const names = [...new Set([current.name, cpu.name])].map((name) => `'${name}'`).join(' nor ');
  return new UnsupportedError(where, `no engine here holds ${dtype}: neither ${names}; cast to another dtype`);
}

/** Name of the engine that will compute the node. */
export function placeOfNode(node: Node): string {
  const current = getEngine();
  return holds(current, node) ? current.name : 'cpu';
}
