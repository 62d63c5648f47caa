/** Files of PyTorch and NumPy, which these wrote (tooling/goldens/files.py), and what is written for them. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { type HostArray, type HostDType, sizeOf, viewHost } from '../arrays.ts';
import { crc32 } from '../checksum.ts';
import { DataError } from '../errors.ts';
import { decodeSafetensors } from '../safetensors.ts';
import { decodeNpy, decodeNpz, encodeNpy, encodeNpz } from './numpy.ts';
import { PickleReader } from './pickle.ts';
import { decodeTorch } from './torch.ts';
import { encodeTorch } from './write-torch.ts';
import { readZip, unpackedBytes, writeZip } from './zip.ts';

interface Stored {
  readonly dtype: HostDType;
  readonly shape: readonly number[];
  readonly data: string;
}

interface Goldens {
  readonly torch: readonly {
    readonly name: string;
    readonly file: string;
    readonly tensors: Readonly<Record<string, Stored>>;
  }[];
  readonly torchRefused: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly numpy: {
    readonly files: readonly { readonly file: string; readonly array: Stored }[];
    readonly archives: readonly string[];
    readonly arrays: Readonly<Record<string, Stored>>;
    readonly refused: readonly string[];
  };
}

const goldens = JSON.parse(readFileSync(new URL('../fixtures/files.json', import.meta.url), 'utf8')) as Goldens;
const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'base64'));

function arrayOf({ dtype, shape, data }: Stored): HostArray {
  return { dtype, shape, data: viewHost(dtype, bytesOf(data).buffer, 0, sizeOf(shape)) } as HostArray;
}

const arraysOf = (stored: Readonly<Record<string, Stored>>): Record<string, HostArray> =>
  Object.fromEntries(Object.entries(stored).map(([name, one]) => [name, arrayOf(one)]));

/** The code of the DataError that a call throws; any other error fails the test. */
async function refusal(call: () => unknown): Promise<DataError | null> {
  try {
    await call();
    return null;
  } catch (error) {
    if (error instanceof DataError) return error;
    throw error;
  }
}

const torchFile = (name: string): Uint8Array => bytesOf(goldens.torch.find((file) => file.name === name)!.file);

describe('files of torch.save', () => {
  it.each(goldens.torch)('$name', ({ file, tensors }) => {
    expect(Object.fromEntries(decodeTorch(bytesOf(file)).tensors)).toEqual(arraysOf(tensors));
    // As it came from a stream: not at a multiple of anything.
    const moved = new Uint8Array(bytesOf(file).length + 3);
    moved.set(bytesOf(file), 3);
    expect(decodeTorch(moved.subarray(3)).tensors.size).toBe(Object.keys(tensors).length);
  });

  it('keep plain values beside the tensors', () => {
    for (const form of ['zip', 'pickles', 'protocol4']) {
      const { values } = decodeTorch(torchFile(`checkpoint ${form}`));
      const found = ['epoch', 'best', 'name', 'done', 'more', 'large', 'sizes.1.0', 'shape.1', 'device'].map((name) =>
        values.get(name),
      );
      expect(found).toEqual([3, 0.25, 'net é', false, null, 2n ** 70n, 2, 3, 'cpu']);
      expect(values.get('optimizer.param_groups.0.lr')).toBe(0.001);
      expect(values.has('dtype')).toBe(false);
    }
  });

  it('are copies of their own, shared storages too', () => {
    const file = torchFile('state zip');
    const { tensors } = decodeTorch(file);
    const [embed, tied] = [tensors.get('embed.weight')!, tensors.get('tied.weight')!];
    expect(embed.data).toEqual(tied.data);
    embed.data[0] = 100;
    expect(tied.data[0]).not.toBe(100);
    file.fill(0);
    expect(tied.data[0]).not.toBe(0);
  });

  it.each(Object.entries(goldens.torchRefused))('are refused, and nothing is run: %s', async (_, forms) => {
    for (const file of Object.values(forms)) {
      const error = await refusal(() => decodeTorch(bytesOf(file), 'net.pt'));
      expect(error?.code).toBe('format');
      expect(error?.message).toMatch(
        /^\[decodeTorch\] net\.pt holds (an object of|a) '[\w.]+'.*: .*(torch\.save|convert)/,
      );
    }
  });

  it('name the class of a call in them', async () => {
    const error = await refusal(() => decodeTorch(bytesOf(goldens.torchRefused['a call']!.zip!), 'x.pt'));
    expect(error?.message).toMatch(
      /x\.pt holds an object of 'posix\.system': only tensors .* nothing in a file is run/,
    );
  });

  it('that are cut off or changed are refused with an error of the library, or read as they were', async () => {
    for (const name of ['views zip', 'views pickles']) {
      const file = torchFile(name);
      const whole = Object.fromEntries(decodeTorch(file).tensors);
      for (let length = 0; length < file.length; length += 131)
        expect(await refusal(() => decodeTorch(file.subarray(0, length))), `${name} to ${length}`).not.toBeNull();
      for (let at = 0; at < file.length; at += 29) {
        const changed = file.slice();
        changed[at]! ^= 1 << (at % 8);
        let found: object = whole;
        const error = await refusal(() => (found = Object.fromEntries(decodeTorch(changed).tensors)));
        // The old form has no checksums: changed numbers stay unseen. In archives only what says nothing may change.
        if (error === null && name.endsWith('zip')) expect(found, `${name} at ${at}`).toEqual(whole);
      }
    }
  });

  it('that ask for more memory than they have are refused', async () => {
    const stretched = torchFile('views zip');
    // 4 GiB of one element: the shape of 'stretched', (4, 5), is in the pickle as two numbers of a byte.
    const entry = [...readZip('t', stretched, '').values()].find(({ name }) => name.endsWith('data.pkl'))!;
    const pickle = Buffer.from(entry.packed).toString('latin1');
    const grown = pickle.replace('K\x04K\x05\x86', 'J\0\0\0\x40K\x05\x86').replace('K\x06K\x00\x86', 'K\x00K\x00\x86');
    expect(grown.length).toBe(pickle.length + 3);
    const parts = [...readZip('t', stretched, '').values()].map(({ name, packed }) => [name, packed] as const);
    const file = writeZip(
      't',
      parts.map(([name, packed]) => [
        name,
        name === entry.name ? Uint8Array.from(Buffer.from(grown, 'latin1')) : packed,
      ]),
    );
    const error = await refusal(() => decodeTorch(file, 'bomb.pt'));
    expect(error?.message).toMatch(/bomb\.pt holds tensors of far more elements than the file has|needs \d+ bytes/);
  });

  it('that hold themselves, or one dictionary everywhere, end', async () => {
    const archive = (pickle: string): Uint8Array =>
      writeZip('t', [['a/data.pkl', Uint8Array.from(Buffer.from(pickle, 'latin1'))]]);
    const self = archive('\x80\x02]q\x00h\x00a.');
    expect((await refusal(() => decodeTorch(self)))?.message).toMatch(/holds itself/);
    // Each list has the one before twice: 2^40 names.
    const twice = archive(`\x80\x02]q\x00${Array.from({ length: 40 }, () => '](h\x00h\x00eq\x00').join('')}.`);
    expect((await refusal(() => decodeTorch(twice)))?.message).toMatch(/more than \d+ names/);
  });

  it('are named where another reader gets them', async () => {
    expect((await refusal(() => decodeSafetensors(torchFile('state zip'), 'model.pt')))?.message).toMatch(
      /model\.pt is no safetensors file, but what torch\.save writes .* decodeTorch\(bytes\)/,
    );
    expect((await refusal(() => decodeTorch(bytesOf(goldens.numpy.archives[0]!))))?.message).toMatch(
      /read by decodeNpz/,
    );
    expect((await refusal(() => decodeTorch(new Uint8Array(100))))?.code).toBe('format');
    expect((await refusal(() => decodeTorch('model.pt' as never)))?.code).toBe('argument');
  });
});

describe('files for torch.load', () => {
  const { tensors } = goldens.torch.find(({ name }) => name === 'dtypes zip')!;
  const made = { ...arraysOf(tensors), näme: arrayOf(goldens.numpy.arrays.empty!), scalar: one(2.5) };

  function one(value: number): HostArray {
    return { dtype: 'float64', shape: [], data: Float64Array.of(value) };
  }

  it('are read back, and equal for equal contents', () => {
    const file = encodeTorch(made);
    expect(Object.fromEntries(decodeTorch(file).tensors)).toEqual(made);
    expect(encodeTorch(new Map(Object.entries(made)))).toEqual(file);
    expect([...decodeTorch(encodeTorch({})).tensors]).toEqual([]);
    // Elements can be mapped into memory.
    const at = Buffer.from(file).indexOf(bytesOf(tensors.float64!.data));
    expect(at % 64).toBe(0);
  });

  it('are what PyTorch reads, where it is there', () => {
    const python = '/usr/bin/python3';
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-torch-'));
    try {
      execFileSync(python, ['-c', 'import torch'], { stdio: 'ignore' });
      const path = join(folder, 'made.pt');
      writeFileSync(path, encodeTorch(made));
      const program =
        "import torch,sys; d=torch.load(sys.argv[1], weights_only=True); d={k:v.clone() for k,v in d.items()}; torch.save(d, sys.argv[1]); print(','.join(d))";
      const names = execFileSync(python, ['-c', program, path], { encoding: 'utf8' }).trim();
      expect(names.split(',')).toEqual(Object.keys(made));
      expect(Object.fromEntries(decodeTorch(readFileSync(path)).tensors)).toEqual(made);
    } catch (error) {
      // A machine without PyTorch: the test before has asked what can be asked there.
      if (!/import torch'?$/m.test(error instanceof Error ? error.message : '')) throw error;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('refuse what PyTorch has no form for', async () => {
    const wide: HostArray = { dtype: 'uint32', shape: [1], data: Uint32Array.of(1) };
    expect((await refusal(() => encodeTorch({ wide })))?.message).toBe(
      "[encodeTorch] 'wide' is uint32, which files of PyTorch have no storage for; cast it, or use encodeSafetensors",
    );
    expect((await refusal(() => encodeTorch({ wide: { ...wide, shape: [2] } })))?.code).toBe('mismatch');
    expect((await refusal(() => encodeTorch([wide] as never)))?.code).toBe('argument');
  });
});

describe('files of NumPy', () => {
  it.each(
    goldens.numpy.files.map(({ file, array }, i) => [`${i}: ${array.dtype} (${array.shape})`, file, array] as const),
  )('%s', (_, file, stored) => {
    const array = arrayOf(stored);
    expect(decodeNpy(bytesOf(file))).toEqual(array);
    expect(decodeNpy(encodeNpy(array))).toEqual(array);
  });

  it('are written as NumPy writes them, byte for byte', () => {
    for (const { file, array } of goldens.numpy.files.slice(0, 12))
      expect(encodeNpy(arrayOf(array))).toEqual(bytesOf(file));
  });

  it('come in archives, packed or not', async () => {
    const arrays = arraysOf(goldens.numpy.arrays);
    for (const archive of goldens.numpy.archives)
      expect(Object.fromEntries(await decodeNpz(bytesOf(archive)))).toEqual(arrays);
    expect(Object.fromEntries(await decodeNpz(encodeNpz(arrays)))).toEqual(arrays);
  });

  it('of other types, cut off, or of another kind are refused', async () => {
    for (const file of goldens.numpy.refused)
      expect((await refusal(() => decodeNpy(bytesOf(file), 'x.npy')))?.message).toMatch(
        /^\[decodeNpy\] x\.npy (is of type|has a header).*astype\('float32'\)/,
      );
    const file = bytesOf(goldens.numpy.files[0]!.file);
    for (let length = 0; length < file.length; length += 9)
      expect(await refusal(() => decodeNpy(file.subarray(0, length)))).not.toBeNull();
    const archive = bytesOf(goldens.numpy.archives[1]!);
    expect((await refusal(() => decodeNpy(archive)))?.message).toMatch(/decodeNpz reads it/);
    expect((await refusal(() => decodeNpz(file)))?.message).toMatch(/decodeNpy reads it/);
    for (let at = 0; at < archive.length; at += 31) {
      const changed = archive.slice();
      changed[at]! ^= 0x10;
      await refusal(() => decodeNpz(changed)); // an error of the library, or none
    }
    const half: HostArray = { dtype: 'bfloat16', shape: [1], data: Uint16Array.of(0) };
    expect((await refusal(() => encodeNpy(half)))?.message).toMatch(/bfloat16, which NumPy does not have; cast it/);
  });
});

describe('archives', () => {
  it('that say more than they hold do not fill the memory', async () => {
    const packed = Uint8Array.from(deflateRawSync(new Uint8Array(5000)));
    const file = writeZip('t', [['x', packed]]);
    const view = new DataView(file.buffer);
    const central = file.length - 22 - 47;
    view.setUint16(central + 10, 8, true); // deflated
    view.setUint32(central + 16, crc32(new Uint8Array(5000)), true);
    const sized = (size: number): Uint8Array => {
      view.setUint32(central + 24, size, true);
      return file;
    };
    const read = async () => unpackedBytes('t', [...readZip('t', file, 'x').values()][0]!, 'x');
    sized(5000);
    expect(await read()).toEqual(new Uint8Array(5000));
    for (const size of [4999, 5001, 2 ** 31]) {
      sized(size);
      expect((await refusal(read))?.code).toBe('format');
    }
  });

  it('have the checksum of others', () => {
    expect(crc32(new TextEncoder().encode('123456789'))).toBe(0xcbf43926);
    expect(crc32(new Uint8Array())).toBe(0);
  });
});

it('random bytes are no pickle that runs on', () => {
  let state = 1;
  const next = (): number => (state = (state * 48271) % 2147483647) & 0xff;
  const rules = { call: () => null, outside: () => null };
  for (let i = 0; i < 3000; i++) {
    const bytes = Uint8Array.from({ length: 60 }, next);
    try {
      new PickleReader('t', bytes, 'x', rules).read();
    } catch (error) {
      expect(error).toBeInstanceOf(DataError);
    }
  }
});
