/** `npm run bench -- --suite browser`: see command.mjs. */
import { main } from './command.mjs';

process.exitCode = await main(process.argv.slice(2));
