// A program emitted by the packed emitter.
import { ProgramBuilder } from '@polygrad/core/kernel';
import { emitPtx, ptxCaps } from '@polygrad/emit-ptx';

const b = new ProgramBuilder();
const x = b.e.param(0, 'float32', 'readwrite', 1);
b.store(x, 0, b.e.add(b.load(x, 0), b.e.f32(1)));
const { text } = emitPtx(b.build({ name: 'increment' }), { computeCapability: 80, isa: '7.0' });
if (!text.includes('.entry kernel_increment(') || !text.includes('add.rn.f32'))
  throw new Error(`unexpected text:\n${text}`);
if (!ptxCaps(80).dtypes.has('bfloat16')) throw new Error('bfloat16 is missing');
