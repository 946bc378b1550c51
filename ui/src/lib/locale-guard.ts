// Under LANG=C.UTF-8 WebKitGTK says that navigator.language is "C", which is no
// language tag: whatever hands it to Intl throws, and the page stays blank.
// Imported before everything else.

export function usableLanguage(tag: string): string {
  try {
    return Intl.getCanonicalLocales(tag)[0] ?? "en";
  } catch {
    return "en";
  }
}

const tag = usableLanguage(navigator.language);
if (tag !== navigator.language) {
  Object.defineProperty(navigator, "language", { value: tag, configurable: true });
  Object.defineProperty(navigator, "languages", { value: [tag], configurable: true });
}
