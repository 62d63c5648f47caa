/** Numbers given to tensors of integers and read back from them, and those that are refused. */
import * as pg from '@polygrad/core';
import { integerFormat } from '../../oracle/formats.ts';
import { expectValues, type Integer } from './values.ts';

export async function checkGiven(dtype: Integer): Promise<void> {
  const { bits, signed } = integerFormat(dtype) as { bits: number; signed: boolean };
  const top = (1n << BigInt(signed ? bits - 1 : bits)) - 1n;
  const low = signed ? -top - 1n : 0n;
  await expectValues('bigints', pg.tensor([top, low, 5n], { dtype }), [top, low, 5n], dtype);
  await expectValues('full', pg.full([2], top, { dtype }), [top, top], dtype);
  await expectValues(
    'a bigint next to a tensor',
    pg.scope(() => pg.zeros([2], { dtype }).add(top)),
    [top, top],
    dtype,
  );
  await expectValues(
    'sums wrap',
    pg.scope(() => pg.full([2], top, { dtype }).add(1)),
    [low, low],
    dtype,
  );
  await expectValues('arange', pg.arange(5, { dtype }), [0n, 1n, 2n, 3n, 4n], dtype);
  await expectValues('eye', pg.eye(2, { dtype }), [1n, 0n, 0n, 1n], dtype);
  const t = pg.tensor([[low], [top]], { dtype });
  const nested = JSON.stringify(await t.array(), (_, v) => (typeof v === 'bigint' ? `${v}n` : v));
  const shown = (v: bigint): string => (bits === 64 ? `"${v}n"` : `${v}`);
  if (nested !== `[[${shown(low)}],[${shown(top)}]]`) throw new Error(`array() of ${dtype} gives ${nested}`);
  t.dispose();
  const one = pg.tensor(top, { dtype });
  const item = await one.item<number | bigint>();
  if (item !== (bits === 64 ? top : Number(top))) throw new Error(`item() of ${dtype} gives ${item}`);
  one.dispose();
}

export function checkRefusals(dtype: Integer): void {
  const refuse = (what: string, says: RegExp, run: () => unknown): void => {
    try {
      pg.scope(() => {
        run();
      });
    } catch (error) {
      if (!says.test((error as Error).message)) throw new Error(`${what}: '${(error as Error).message}'`);
      return;
    }
    throw new Error(`${what} of ${dtype} is accepted`);
  };
  refuse('a gradient', new RegExp(dtype), () => pg.ones([2], { dtype, requiresGrad: true }));
  refuse('a fraction', new RegExp(`0.5.*${dtype}`), () => pg.ones([2], { dtype }).add(0.5));
  refuse('a bigint next to floats', /5n.*float32/, () => pg.ones([2]).add(5n));
}
