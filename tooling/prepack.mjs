/**
 * Runs in a package's folder before it is packed or published: joins its modules for Node, or compiles the binary that it carries; nothing is packed
 * without that. Nor where another program than pnpm packs, since only pnpm puts versions in the place of `workspace:` ranges and takes
 * `exports` from `publishConfig`.
 */
const agent = process.env.npm_config_user_agent ?? '';
if (agent.startsWith('pnpm/')) {
  const folder = process.cwd();
  const { joinModules } = await import('./join.mjs');
  await joinModules(folder);
  const { binaryOf, whyNoBinary } = await import('./binaries.mjs');
  const why = binaryOf(folder) === null ? null : whyNoBinary(folder);
  if (why !== null) {
    process.stderr.write(`[publish] ${process.env.npm_package_name} is not packed: ${why}\n`);
    process.exitCode = 1;
  }
} else {
  const name = process.env.npm_package_name ?? 'this package';
  process.stderr.write(
    `[publish] ${name} would be packed by ${agent.split(' ')[0] || 'an unknown program'}, with "workspace:" ranges that nobody can install; ` +
      'use `pnpm publish` (or `pnpm pack`)\n',
  );
  process.exitCode = 1;
}
