/* memkind's header for unchanged programs: compile with the folder of this file as an include
 * directory, and link with -lhmalloc. */
#include <nearfar/hmalloc_memkind.h>
