# Adds up what cargo test, vitest and node --test say of themselves.

# test result: ok. 3 passed; 0 failed; 0 ignored; ...
/^test result:/ {
    for (i = 2; i <= NF; i++) {
        if ($i == "passed;") passed += $(i - 1)
        if ($i == "failed;") failed += $(i - 1)
        if ($i == "ignored;") skipped += $(i - 1)
    }
}
#      Tests  1 failed | 11 passed | 2 skipped (14)
/^ +Tests +[0-9]/ {
    for (i = 2; i <= NF; i++) {
        if ($i == "passed") passed += $(i - 1)
        if ($i == "failed") failed += $(i - 1)
        if ($i == "skipped") skipped += $(i - 1)
    }
}
# `# pass 5`, or with another sign before it where the report is meant for people
/^[^ ]+ (pass|fail|skipped|cancelled) [0-9]+$/ {
    if ($2 == "pass") passed += $3
    else if ($2 == "skipped") skipped += $3
    else failed += $3
}
# A test that lacks its data says so and returns.
/^skipped:/ { skipped++; passed-- }
END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }
