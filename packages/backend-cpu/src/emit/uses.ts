/**
 * Counts the uses of every value that a statement needs, and lists for each block what it reads from further out.
 *
 * Runs once between lowering and printing. Values nothing needs keep a count of zero and are never printed.
 */
import { told } from '#listing';
import { refuse } from './target.ts';
import { type Block, isCheap, type Val } from './lir.ts';

/** Fills `uses`, `left` and `imports` below `root`. */
export function countUses(root: Block): void {
  for (const stmt of root.stmts) {
    switch (stmt.kind) {
      case 'store':
        need(stmt.addr, root);
        need(stmt.value, root);
        break;
      case 'set':
        need(stmt.value, root);
        break;
      case 'def':
        break;
      case 'block': {
        const { block } = stmt;
        if (block.loop !== null) {
          if (block.loop.start !== null) need(block.loop.start, root);
          for (const i of block.loop.inductions) need(i.init, root);
          need(block.loop.limit, block);
        }
        if (block.kind === 'if') need(block.cond!, root);
        countUses(block);
        if (block.kind === 'repeat') need(block.cond!, block);
        break;
      }
      default:
        stmt satisfies never;
    }
  }
}

const pending: Val[] = [];

/** Notes that a consumer in `at` needs `v`; the first time also that `v` needs its operands. */
function need(v: Val, at: Block): void {
  count(v, at);
  while (pending.length > 0) {
    const next = pending.pop()!;
    for (let i = next.args.length - 1; i >= 0; i--) count(next.args[i]!, next.block);
  }
}

function count(v: Val, at: Block): void {
  if (v.uses === 0) pending.push(v);
  v.uses++;
  v.left++;
  if (v.block === at || (v.cls === null && isCheap(v))) return;
  let child = at;
  while (child.parent !== v.block) {
    if (child.parent === null) refuse(told && 'a value is used outside its block');
    child = child.parent;
  }
  if (v.imported === child) return;
  v.imported = child;
  v.uses++;
  v.left++;
  child.imports.push(v);
}
