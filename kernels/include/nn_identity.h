/* What an image holds, in a section of its own that takes no memory of the board's: .nn_identity
 * has a line of text, ended by a zero byte, for every network that is linked, and one for the test
 * firmware. `readelf -p .nn_identity app.elf` shows them; buildtool refuses to run an image with
 * the plan of another one.
 */
#ifndef NN_IDENTITY_H
#define NN_IDENTITY_H

#if defined(__GNUC__) && defined(__ELF__)
#define NN_TEXT_(value) #value
#define NN_TEXT(value) NN_TEXT_(value)
#define NN_VERSION_(a, b, c) NN_TEXT(a) "." NN_TEXT(b) "." NN_TEXT(c)
#if defined(__clang__)
#define NN_COMPILER "clang " NN_VERSION_(__clang_major__, __clang_minor__, __clang_patchlevel__)
#else
#define NN_COMPILER "gcc " NN_VERSION_(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__)
#endif
#define NN_IDENTITY(text)                                                                          \
    __asm(".pushsection .nn_identity, \"\", %progbits\n\t.asciz \"buildtool " text                 \
          "\"\n\t.popsection")
#else
#define NN_COMPILER ""
#define NN_IDENTITY(text) typedef char nn_no_identity
#endif

/* A network: its name, the digest of its plan, the digest of its weights' layout, the compiler. */
#define NN_IDENTITY_NETWORK(net, plan, layout)                                                     \
    NN_IDENTITY("network " net " plan " plan " layout " layout " compiler " NN_COMPILER)

#endif
