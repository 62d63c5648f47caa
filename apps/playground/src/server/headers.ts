/** The headers of every file: no other page may share memory with this one, and what the page may do. */

/** Headers under which the page may share memory between threads. */
export const ISOLATION = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

/**
 * Everything from the page's own origin and nothing from elsewhere. The CPU engine compiles WebAssembly and starts its threads from
 * blobs.
 */
export const POLICY: string = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self' blob:",
  "connect-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

/** All of them; a policy in a header may also forbid that others frame the page. */
export const HEADERS: Readonly<Record<string, string>> = {
  ...ISOLATION,
  'Content-Security-Policy': `${POLICY}; frame-ancestors 'none'`,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=()',
};
