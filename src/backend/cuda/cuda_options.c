/* SPDX-License-Identifier: MIT */
/* The table of nvcc's options. A new one of a newer nvcc belongs here; one that is missing is left
 * to nvcc's judgement, and checked as one for the host compiler, to which nvcc can be told to pass
 * what it does not know. */
#include "backend/cuda/cuda_options.h"
#include <string.h>

/* In the order of strcmp: it is searched for every flag of every request. */
static const dj__cuda_option options_table[] = {
    {"--Ofast-compile", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--Wdefault-stream-launch", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--Werror", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--Wext-lambda-captures-this", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--Wmissing-launch-bounds", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--Wno-deprecated-declarations", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--Wno-deprecated-gpu-targets", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--Wreorder", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--aggressive-inline", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--all-prefix", DJ__CUDA_TEXT, DJ__CUDA_RUNS},
    {"--allow-unsupported-compiler", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--archive-options", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"--archiver-binary", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--augment-host-linker-script", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"--brief-diagnostics", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--cicc-options", DJ__CUDA_CICC_WORDS, DJ__CUDA_ALLOWED},
    {"--cicc-prefix", DJ__CUDA_TEXT, DJ__CUDA_RUNS},
    {"--clean-targets", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"--compile", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--compile-as-tools-patch", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--compiler-bindir", DJ__CUDA_TEXT, DJ__CUDA_SETS_HOST},
    {"--compiler-options", DJ__CUDA_HOST_WORDS, DJ__CUDA_ALLOWED},
    {"--compress-mode", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--cpp-prefix", DJ__CUDA_TEXT, DJ__CUDA_RUNS},
    {"--cubin", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--cuda", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--cuda-api-version", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--cudadevrt", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--cudafe-options", DJ__CUDA_CICC_WORDS, DJ__CUDA_ALLOWED},
    {"--cudafe-prefix", DJ__CUDA_TEXT, DJ__CUDA_RUNS},
    {"--cudart", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--dD", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--dQ", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--debug", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--default-stream", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--define-macro", DJ__CUDA_MACRO, DJ__CUDA_ALLOWED},
    {"--dependency-drive-prefix", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--dependency-output", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"--dependency-target-name", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"--device-c", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--device-compilation", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"--device-debug", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--device-entity-has-hidden-visibility", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--device-link", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--device-stack-protector", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--device-w", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--diag-error", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--diag-suppress", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--diag-warn", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--disable-warnings", DJ__CUDA_NONE, DJ__CUDA_SILENCES},
    {"--display-error-number", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--dlink-time-opt", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--dont-use-profile", DJ__CUDA_NONE, DJ__CUDA_OTHER_PARTS},
    {"--dopt", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--drive-prefix", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--dryrun", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--entries", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--export-dir", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"--expt-extended-lambda", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--expt-relaxed-constexpr", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--extended-lambda", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--extensible-whole-program", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--extern-mode", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"--extra-device-vectorization", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--fassociative-math", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--fatbin", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--fatbin-options", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"--fdevice-syntax-only", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--fdevice-time-trace", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"--fmad", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--force-cl-env-setup", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--forward-unknown-opts", DJ__CUDA_NONE, DJ__CUDA_PASSES_ON},
    {"--forward-unknown-to-host-compiler", DJ__CUDA_NONE, DJ__CUDA_PASSES_ON},
    {"--forward-unknown-to-host-linker", DJ__CUDA_NONE, DJ__CUDA_PASSES_ON},
    {"--frandom-seed", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--ftemplate-backtrace-limit", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--ftemplate-depth", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--ftz", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--gen-opt-lto", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--generate-code", DJ__CUDA_TEXT, DJ__CUDA_SETS_ARCH},
    {"--generate-dependencies", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--generate-dependencies-with-compile", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--generate-dependency-targets", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--generate-line-info", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--generate-nonsystem-dependencies", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--generate-nonsystem-dependencies-with-compile", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--global_var", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--gpu-architecture", DJ__CUDA_TEXT, DJ__CUDA_SETS_ARCH},
    {"--gpu-code", DJ__CUDA_TEXT, DJ__CUDA_SETS_ARCH},
    {"--help", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--host-linker-script", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"--host-relocatable-link", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--include-path", DJ__CUDA_PATH, DJ__CUDA_ALLOWED},
    {"--input-drive-prefix", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--intern-mode", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"--jobserver", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--jump-table-density", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--keep", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"--keep-device-functions", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--keep-dir", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"--legacy-launch-seq", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--lib", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--libdevice-directory", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PARTS},
    {"--library", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--library-path", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--link", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--linker-options", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"--list-gpu-arch", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--list-gpu-code", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--lto", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--ltoir", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--m64", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--machine", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--maxrregcount", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--no-align-double", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--no-compress", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--no-device-inline", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--no-device-link", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--no-display-error-number", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--no-exceptions", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--no-host-device-initializer-list", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--no-host-device-move-forward", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--no-libdevice", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--no-shadow-functions", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--nvasm-loopback", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--nvasm-options", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"--nvdisasm-options", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"--nvlink-options", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"--nvlink-prefix", DJ__CUDA_TEXT, DJ__CUDA_RUNS},
    {"--nvvm-version", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PARTS},
    {"--objdir-as-tempdir", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"--optimization-info", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--optimize", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--options-file", DJ__CUDA_TEXT, DJ__CUDA_READS_FLAGS},
    {"--optix-ir", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--output-directory", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"--output-file", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"--pre-include", DJ__CUDA_PATH, DJ__CUDA_ALLOWED},
    {"--prec-div", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--prec-sqrt", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--preprocess", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--profile", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--ptx", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--ptxas-options", DJ__CUDA_PTXAS_WORDS, DJ__CUDA_ALLOWED},
    {"--ptxas-prefix", DJ__CUDA_TEXT, DJ__CUDA_RUNS},
    {"--qpp-config", DJ__CUDA_TEXT, DJ__CUDA_READS_FLAGS},
    {"--relocatable-device-code", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"--relocatable-link", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--relocatable-ptx", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--resource-usage", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--restrict", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--restrict-in-struct", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--run", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--run-args", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--sanitize", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--save-temps", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"--shared", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--source-in-ptx", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--split-compile", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--split-compile-extended", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--static-global-template-stub", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--std", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--system-include", DJ__CUDA_PATH, DJ__CUDA_ALLOWED},
    {"--target-directory", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PARTS},
    {"--tdump", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"--threads", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--time", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"--tool-name", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--trap-into-debugger", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--undefine-macro", DJ__CUDA_PATH, DJ__CUDA_ALLOWED},
    {"--use-cubin", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"--use-local-env", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--use_fast_math", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--verbose", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"--version", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"--version-ident", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"--x", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"-D", DJ__CUDA_MACRO, DJ__CUDA_ALLOWED},
    {"-E", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-G", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-I", DJ__CUDA_PATH, DJ__CUDA_ALLOWED},
    {"-L", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-M", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-MD", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-MF", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"-MM", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-MMD", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-MP", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-MT", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"-O", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-Ofc", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-U", DJ__CUDA_PATH, DJ__CUDA_ALLOWED},
    {"-V", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-Wdefault-stream-launch", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-Werror", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-Wext-lambda-captures-this", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-Wmissing-launch-bounds", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-Wno-deprecated-declarations", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-Wno-deprecated-gpu-targets", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-Wreorder", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-Xarchive", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"-Xcicc", DJ__CUDA_CICC_WORDS, DJ__CUDA_ALLOWED},
    {"-Xcompiler", DJ__CUDA_HOST_WORDS, DJ__CUDA_ALLOWED},
    {"-Xcudafe", DJ__CUDA_CICC_WORDS, DJ__CUDA_ALLOWED},
    {"-Xfatbin", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"-Xlinker", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"-Xnvasm", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"-Xnvdisasm", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"-Xnvlink", DJ__CUDA_OTHER_WORDS, DJ__CUDA_ALLOWED},
    {"-Xptxas", DJ__CUDA_PTXAS_WORDS, DJ__CUDA_ALLOWED},
    {"-_trap_", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-aggressive-inline", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-allow-unsupported-compiler", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-arbin", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-arch", DJ__CUDA_TEXT, DJ__CUDA_SETS_ARCH},
    {"-arch-ls", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-astoolspatch", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-aug-hls", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"-brief-diag", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-c", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-ccbin", DJ__CUDA_TEXT, DJ__CUDA_SETS_HOST},
    {"-clean", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"-code", DJ__CUDA_TEXT, DJ__CUDA_SETS_ARCH},
    {"-code-ls", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-compress-mode", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-cubin", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-cuda", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-cuda-api-version", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-cudadevrt", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-cudart", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-dD", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-dQ", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"-dc", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-ddp", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-default-stream", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-device-entity-has-hidden-visibility", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-device-stack-protector", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-diag-error", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-diag-suppress", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-diag-warn", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-dlink", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-dlto", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-dopt", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-dp", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-dryrun", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-dw", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-e", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-err-no", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-ewp", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-expt-extended-lambda", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-expt-relaxed-constexpr", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-extended-lambda", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-extra-device-vectorization", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-fassociative-math", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-fatbin", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-fdevice-syntax-only", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-fdevice-time-trace", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"-fmad", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-force-cl-env-setup", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-forward-unknown-opts", DJ__CUDA_NONE, DJ__CUDA_PASSES_ON},
    {"-forward-unknown-to-host-compiler", DJ__CUDA_NONE, DJ__CUDA_PASSES_ON},
    {"-forward-unknown-to-host-linker", DJ__CUDA_NONE, DJ__CUDA_PASSES_ON},
    {"-frandom-seed", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-ftemplate-backtrace-limit", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-ftemplate-depth", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-ftz", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-g", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-gen-opt-lto", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-gencode", DJ__CUDA_TEXT, DJ__CUDA_SETS_ARCH},
    {"-global_var", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-h", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-hls", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"-host-r", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-idp", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-include", DJ__CUDA_PATH, DJ__CUDA_ALLOWED},
    {"-isystem", DJ__CUDA_PATH, DJ__CUDA_ALLOWED},
    {"-jobserver", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-jtd", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-keep", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"-keep-device-functions", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-keep-dir", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"-l", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-ldir", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PARTS},
    {"-legacy-launch-seq", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-lib", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-lineinfo", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-link", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-lto", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-ltoir", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-m", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-m64", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-maxrregcount", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-no-compress", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-no-err-no", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-no-libdevice", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-no-lineinfo-ia", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-no-shadow-functions", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-nodinline", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-nodlink", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-noeh", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-nohdinitlist", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-nohdmoveforward", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-noprof", DJ__CUDA_NONE, DJ__CUDA_OTHER_PARTS},
    {"-nvasm-loopback", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-nvvm-version", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PARTS},
    {"-o", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"-objtemp", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"-odir", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"-ok", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"-opt-info", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-optf", DJ__CUDA_TEXT, DJ__CUDA_READS_FLAGS},
    {"-optix-ir", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-pg", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-prec-div", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-prec-sqrt", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-ptx", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-qpp-config", DJ__CUDA_TEXT, DJ__CUDA_READS_FLAGS},
    {"-r", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-rdc", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"-reloc-ptx", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-res-usage", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-restrict", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-restrict-in-struct", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-run", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-run-args", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-sanitize", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-save-temps", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"-shared", DJ__CUDA_NONE, DJ__CUDA_OTHER_PRODUCT},
    {"-split-compile", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-split-compile-extended", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-src-in-ptx", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-static-global-template-stub", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-std", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-t", DJ__CUDA_TEXT, DJ__CUDA_ALLOWED},
    {"-target-dir", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PARTS},
    {"-tdump", DJ__CUDA_NONE, DJ__CUDA_WRITES},
    {"-time", DJ__CUDA_TEXT, DJ__CUDA_WRITES},
    {"-use-cubin", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
    {"-use-local-env", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-use_fast_math", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-v", DJ__CUDA_NONE, DJ__CUDA_ALLOWED},
    {"-w", DJ__CUDA_NONE, DJ__CUDA_SILENCES},
    {"-x", DJ__CUDA_TEXT, DJ__CUDA_OTHER_PRODUCT},
};

enum { OPTIONS_COUNT = sizeof options_table / sizeof options_table[0] };

const dj__cuda_option *dj__cuda_options(size_t *count)
{
    *count = OPTIONS_COUNT;
    return options_table;
}

static const dj__cuda_option *options_search(const char *name, size_t size)
{
    size_t low = 0;
    size_t high = OPTIONS_COUNT;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const dj__cuda_option *option = &options_table[middle];
        int order = strncmp(name, option->name, size);
        if (order == 0) {
            order = option->name[size] == '\0' ? 0 : -1;
        }
        if (order == 0) {
            return option;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

const dj__cuda_option *dj__cuda_find_option(const char *flag, const char **value)
{
    const size_t size = strcspn(flag, "=");
    const dj__cuda_option *option = options_search(flag, size);
    *value = option != NULL && flag[size] == '=' ? flag + size + 1 : NULL;
    /* Those whose value may follow without '='. */
    if (option == NULL && flag[0] == '-' && flag[1] != '\0' && strchr("DUILOlt", flag[1]) != NULL) {
        option = options_search(flag, 2);
        *value = flag + 2;
    }
    return option;
}

const char *dj__cuda_effect_text(dj__cuda_effect effect)
{
    switch (effect) {
    case DJ__CUDA_SETS_ARCH:
        return "the architecture is set by the option arch";
    case DJ__CUDA_WRITES:
        return "where results go is decided by the library, and it keeps no others";
    case DJ__CUDA_OTHER_PRODUCT:
        return "it changes what is produced, which must be one cubin that can be loaded";
    case DJ__CUDA_READS_FLAGS:
        return "files of flags are not part of the key; give the flags themselves";
    case DJ__CUDA_SETS_HOST:
        return "the host compiler is part of the toolchain's identity; set NVCC_CCBIN instead";
    case DJ__CUDA_OTHER_PARTS:
        return "what it names takes the place of a part of the toolchain and is not in the key; "
               "choose the toolkit by CUDA_HOME and the host compiler by NVCC_CCBIN";
    case DJ__CUDA_PASSES_ON:
        return "what nvcc does not know would reach other tools unchecked; give such flags by "
               "--compiler-options";
    case DJ__CUDA_RUNS:
        return "the program that it would run is not part of the key";
    case DJ__CUDA_NAMES_LINES:
        return "line and debug information from there would name a source that is not kept; use "
               "with_line_info or debug_info (JIT_WITH_LINEINFO, JIT_KERNEL_DEBUG_INFO)";
    case DJ__CUDA_SILENCES:
        return "it switches warnings off";
    case DJ__CUDA_ALLOWED:
        break;
    }
    return NULL;
}
