/** Runs before a package is packed or published, and ends that unless pnpm does it: only pnpm puts versions in the place of `workspace:` ranges. */
const agent = process.env.npm_config_user_agent ?? '';
if (!agent.startsWith('pnpm/')) {
  const name = process.env.npm_package_name ?? 'this package';
  process.stderr.write(
    `[publish] ${name} would be packed by ${agent.split(' ')[0] || 'an unknown program'}, with "workspace:" ranges that nobody can install; ` +
      'use `pnpm publish` (or `pnpm pack`)\n',
  );
  process.exitCode = 1;
}
