/** The backend a soak program is told to use, as its built package. */
const kinds = {
  cuda: { make: 'createCudaEngine', plain: {}, options: [{}], first: false },
  // PoCL compiles in both modes. One alone first: the others find its programs on disk.
  opencl: { make: 'createOpenClEngine', plain: { cache: false }, options: [{}, { simt: true }], first: true },
};

/** A way to make its engines; `plain`: options with nothing kept on disk; `options`: those worth a try; `first`: one engine alone first. */
export async function backendOf(name) {
  if (!(name in kinds)) throw new Error(`name a backend: ${Object.keys(kinds).join(' or ')}`);
  const { make, ...rest } = kinds[name];
  const backend = await import(new URL(`../../backend-${name}/dist/index.js`, import.meta.url).href);
  return { create: backend[make], ...rest };
}
