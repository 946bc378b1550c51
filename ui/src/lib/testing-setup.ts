import { configure } from "@testing-library/svelte";

// A busy machine is ten times slower than an idle one.
configure({ asyncUtilTimeout: 20_000 });
