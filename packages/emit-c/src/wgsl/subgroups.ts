/** Subgroups in WGSL: the extension `subgroups`, and the language feature `subgroup_id` where they are told apart. */
import type { KNodeOf, Program, SpecialKind } from '@polygrad/core/kernel';
import type { Context } from '../dialect.ts';
import { call, name, type Part } from '../parts.ts';

const functions = { sum: 'subgroupAdd', prod: 'subgroupMul', max: 'subgroupMax', min: 'subgroupMin' } as const;
const builtins = { subgroup: 'subgroup_id', subgroups: 'num_subgroups' } as const;

export function wgslSubgroup(op: KNodeOf<'SUBGROUP'>['arg']['op'], x: Part): Part {
  return call(`${functions[op]}(${x.text})`, x.dtype);
}

export function wgslSubgroupSpecial(c: Context, kind: Exclude<SpecialKind, 'group' | 'local'>): Part {
  // The start of the kernel is a place that all threads get to.
  const from = kind === 'leader' ? 'select(0i, 1i, subgroupElect())' : `i32(${builtins[kind]})`;
  const title = `${kind}_x`;
  return name(
    c.prologue(title, () => `let ${title} = ${from};`),
    'int32',
  );
}

function asks(program: Program, kind: SpecialKind): boolean {
  return program.body.some((n) => n.op === 'SPECIAL' && n.arg.kind === kind);
}

/** Directives that a program needs. */
export function subgroupLines(program: Program): string[] {
  const lines: string[] = [];
  if (program.body.some((n) => n.op === 'SUBGROUP') || asks(program, 'leader')) lines.push('enable subgroups;');
  if (asks(program, 'subgroup') || asks(program, 'subgroups')) lines.push('requires subgroup_id;');
  return lines;
}

/** Parameters of the entry point that a program needs. */
export function subgroupBuiltins(program: Program): string[] {
  return (['subgroup', 'subgroups'] as const)
    .filter((kind) => asks(program, kind))
    .map((kind) => `@builtin(${builtins[kind]}) ${builtins[kind]}: u32`);
}
