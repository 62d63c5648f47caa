/**
 * The platforms addons are made for: what their packages say, what compiles for them, and which platform a binary is for. A binary's
 * package is chosen by `os` and `cpu` (and `libc`) when the engine's package is installed; src/load.ts finds it by name.
 */

/** `compiler`: those to try, when this machine is another platform; `debian`: the package that has them there. */
export const platforms = {
  'linux-x64': {
    os: 'linux',
    cpu: 'x64',
    libc: 'glibc',
    title: 'Linux on x86-64 (glibc)',
    compiler: ['x86_64-linux-gnu-g++'],
    debian: 'g++-x86-64-linux-gnu',
  },
  'linux-arm64': {
    os: 'linux',
    cpu: 'arm64',
    libc: 'glibc',
    title: 'Linux on ARM64 (glibc)',
    compiler: ['aarch64-linux-gnu-g++'],
    debian: 'g++-aarch64-linux-gnu',
  },
  'darwin-arm64': { os: 'darwin', cpu: 'arm64', title: 'macOS on Apple silicon', compiler: [] },
  'darwin-x64': { os: 'darwin', cpu: 'x64', title: 'macOS on x86-64', compiler: [] },
  'win32-x64': {
    os: 'win32',
    cpu: 'x64',
    title: 'Windows on x86-64',
    compiler: ['x86_64-w64-mingw32-g++-posix', 'x86_64-w64-mingw32-g++'],
    debian: 'g++-mingw-w64-x86-64-posix',
  },
};

const packageName = (name, platform) => `@polygrad/backend-${name}-${platform}`;

/** package.json of a platform's package. */
export function manifestOf(name, platform, version) {
  const { os, cpu, libc, title } = platforms[platform];
  return {
    name: packageName(name, platform),
    version,
    description: `The native part of @polygrad/backend-${name} for ${title}`,
    license: 'Apache-2.0',
    engines: { node: '>=20' },
    os: [os],
    cpu: [cpu],
    ...(libc === undefined ? {} : { libc: [libc] }),
    exports: { [`./${name}.node`]: `./${name}.node`, './package.json': './package.json' },
    files: [`${name}.node`],
  };
}

export function readmeOf(name, platform) {
  return `# ${packageName(name, platform)}

The native part of [@polygrad/backend-${name}](https://www.npmjs.com/package/@polygrad/backend-${name}) for ${platforms[platform].title}. It is
installed with that package, where it fits; do not install it by hand.
`;
}

const elf = { 62: 'linux-x64', 183: 'linux-arm64' };
const machO = { 16777223: 'darwin-x64', 16777228: 'darwin-arm64' };
const pe = { 34404: 'win32-x64' };

/** The platform a binary is for, by its header; null for anything else. */
export function platformOf(binary) {
  const at = (offset, read) => (binary.length >= offset + 4 ? read.call(binary, offset) : 0);
  const word = (offset) => at(offset, binary.readUInt32LE);
  if (word(0) === 0x464c457f) return elf[word(16) >>> 16] ?? null;
  if (word(0) === 0xfeedfacf) return machO[word(4)] ?? null;
  if ((word(0) & 0xffff) === 0x5a4d && word(word(0x3c)) === 0x4550) return pe[word(word(0x3c) + 4) & 0xffff] ?? null;
  return null;
}
