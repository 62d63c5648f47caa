// A program printed by the packed emitter.
import { ProgramBuilder } from '@polygrad/core/kernel';
import { printOpenCl, printWgsl } from '@polygrad/emit-c';

const b = new ProgramBuilder();
const x = b.e.param(0, 'float32', 'readwrite', 1);
b.store(x, 0, b.e.add(b.load(x, 0), b.e.f32(1)));
const program = b.build({ name: 'increment' });
for (const print of [printWgsl, printOpenCl]) {
  const { source } = print(program);
  if (!source.includes('p0[0') || !source.includes('kernel_increment'))
    throw new Error(`unexpected source:\n${source}`);
}
