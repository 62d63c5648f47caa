/** What native/cu.h declares of the driver against NVIDIA's own cuda.h, where a CUDA toolkit is installed. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const here = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));
const toolkit = [process.env.CUDA_HOME, '/usr/local/cuda'].find(
  (folder) => folder !== undefined && existsSync(join(folder, 'include/cuda.h')),
);
const compiler = ['c++', 'g++', 'clang++'].find((name) => spawnSync(name, ['--version']).status === 0);
const missing = toolkit === undefined ? 'no CUDA toolkit is installed' : compiler ? null : 'there is no C++ compiler';
if (missing !== null) process.stderr.write(`SKIPPED the check of declarations against cuda.h: ${missing}\n`);

it.skipIf(missing !== null)('declares what cuda.h declares', () => {
  const header = readFileSync(here('native/cu.h'), 'utf8');
  const constants = [...header.matchAll(/^constexpr \w+ (CU\w+) =/gm)].map(([, name]) => name as string);
  const functions = [...header.matchAll(/\bX\((\w+),\s*(cu\w+),/g)].map(([, name, symbol]) => ({ name, symbol }));
  expect(constants.length).toBeGreaterThan(30);
  expect(functions.length).toBeGreaterThan(30);
  const source = `
    #include <cstddef>
    #include <cstdint>
    #include <string>
    namespace ours {
    #include "cu.h"
    }
    ${constants.map((name) => `constexpr long long our_${name} = ours::${name};`).join('\n')}
    // Some of its names are macros: from here on ours cannot be said any more.
    #include <cuda.h>
    template <typename A, typename B> struct Same { static constexpr bool value = false; };
    template <typename R, typename... A, typename S, typename... B>
    struct Same<R (*)(A...), S (*)(B...)> {
      static constexpr bool value = [] {
        if (sizeof...(A) != sizeof...(B)) return false;
        constexpr std::size_t a[] = {sizeof(R), sizeof(A)...}, b[] = {sizeof(S), sizeof(B)...};
        for (std::size_t i = 0; i < sizeof...(A) + 1 && i < sizeof...(B) + 1; i++) if (a[i] != b[i]) return false;
        return true;
      }();
    };
    ${constants.map((name) => `static_assert(our_${name} == static_cast<long long>(${name}), "${name}");`).join('\n')}
    ${functions.map(({ name, symbol }) => `static_assert(Same<decltype(ours::CuTable::${name}), decltype(&::${symbol})>::value, "${symbol}");`).join('\n')}
    static_assert(sizeof(ours::CUmemPoolProps) == sizeof(::CUmemPoolProps), "CUmemPoolProps");
    static_assert(offsetof(ours::CUmemPoolProps, locationId) == offsetof(::CUmemPoolProps, location) + 4, "location");
    static_assert(offsetof(ours::CUmemPoolProps, maxSize) == offsetof(::CUmemPoolProps, maxSize), "maxSize");
    static_assert(sizeof(ours::CUkernelNodeParams) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1), "CUkernelNodeParams");
    static_assert(offsetof(ours::CUkernelNodeParams, extra) == offsetof(CUDA_KERNEL_NODE_PARAMS_v1, extra), "extra");
    static_assert(offsetof(ours::CUkernelNodeParams, sharedMemBytes) == offsetof(CUDA_KERNEL_NODE_PARAMS_v1, sharedMemBytes), "shared");
    static_assert(sizeof(ours::CUuuid) == sizeof(::CUuuid), "CUuuid");`;
  const folder = mkdtempSync(join(tmpdir(), 'polygrad-cuda-h-'));
  try {
    writeFileSync(join(folder, 'check.cc'), source);
    const include = [join(toolkit as string, 'include'), here('native'), here('../addon/native')];
    const args = ['-std=c++17', '-fsyntax-only', ...include.flatMap((path) => ['-I', path]), join(folder, 'check.cc')];
    execFileSync(compiler as string, args, { stdio: 'pipe' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
