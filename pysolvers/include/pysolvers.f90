! pysolvers.f90 - the functions of pysolvers_api.h for Fortran. Compile this file with the
! program, because modules of Fortran belong to one compiler.
!
! In an array x(rows, systems) the systems lie one after the other, as the functions with
! names like pysolvers_dsolve need them. They solve
!
!   lower(i, k) x(i-1, k) + diag(i, k) x(i, k) + upper(i, k) x(i+1, k) = rhs(i, k),
!
! where lower(1, k) and upper(rows, k) are not used. x can be the same contiguous array as rhs.
module pysolvers
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_double_complex, c_f_pointer, &
    c_float, c_float_complex, c_int, c_int32_t, c_int64_t, c_null_ptr, c_ptr, c_size_t
  implicit none
  private

  integer(c_int), parameter, public :: pysolvers_ok = 0, pysolvers_singular = 1, &
    pysolvers_bad_argument = -1, pysolvers_bad_layout = -2, pysolvers_no_memory = -3, &
    pysolvers_unsupported = -4
  integer(c_int), parameter, public :: pysolvers_f32 = 0, pysolvers_f64 = 1, pysolvers_c64 = 2, &
    pysolvers_c128 = 3
  integer(c_int), parameter, public :: pysolvers_pivot_auto = 0, pysolvers_pivot_never = 1, &
    pysolvers_pivot_always = 2
  integer(c_int32_t), parameter, public :: pysolvers_periodic = 1, pysolvers_short_lower = 2, &
    pysolvers_short_upper = 4, pysolvers_row_sums = 8

  ! Element i of system (j, k), counted from 0, is data(i*row + j*outer + k*inner).
  type, bind(c), public :: pysolvers_input
    type(c_ptr) :: data = c_null_ptr
    integer(c_int64_t) :: row = 0, outer = 0, inner = 0
  end type

  type, bind(c), public :: pysolvers_output
    type(c_ptr) :: data = c_null_ptr
    integer(c_int64_t) :: row = 0, outer = 0, inner = 0
  end type

  type, bind(c), public :: pysolvers_systems
    integer(c_int) :: dtype = pysolvers_f64
    integer(c_int32_t) :: flags = 0
    integer(c_int64_t) :: rows = 0, outer = 1, inner = 1
    type(pysolvers_input) :: lower, diag, upper, rhs
    type(pysolvers_output) :: x
    type(c_ptr) :: info = c_null_ptr
  end type

  type, bind(c), public :: pysolvers_options
    integer(c_int) :: pivot = pysolvers_pivot_auto
    integer(c_int32_t) :: threads = 0
  end type

  public :: pysolvers_solve, pysolvers_factor, pysolvers_factor_solve, pysolvers_factor_free
  public :: pysolvers_ssolve, pysolvers_dsolve, pysolvers_csolve, pysolvers_zsolve
  public :: pysolvers_status_text

  interface
    integer(c_int) function pysolvers_solve(systems, options) bind(c)
      import
      type(pysolvers_systems), intent(in) :: systems
      type(pysolvers_options), intent(in), optional :: options
    end function

    integer(c_int) function pysolvers_factor(systems, options, factors) bind(c)
      import
      type(pysolvers_systems), intent(in) :: systems
      type(pysolvers_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: factors
    end function

    integer(c_int) function pysolvers_factor_solve(factors, trans, outer, inner, rhs, x, &
        threads) bind(c)
      import
      type(c_ptr), value :: factors
      character(kind=c_char), value :: trans
      integer(c_int64_t), value :: outer, inner
      type(pysolvers_input), intent(in) :: rhs
      type(pysolvers_output), intent(in) :: x
      integer(c_int32_t), value :: threads
    end function

    subroutine pysolvers_factor_free(factors) bind(c)
      import
      type(c_ptr), value :: factors
    end subroutine

    integer(c_int) function pysolvers_ssolve(rows, systems, lower, diag, upper, rhs, x) bind(c)
      import
      integer(c_int64_t), value :: rows, systems
      real(c_float), intent(in) :: lower(rows, *), diag(rows, *), upper(rows, *)
      real(c_float), intent(in) :: rhs(rows, *)
      real(c_float), intent(inout) :: x(rows, *)
    end function

    integer(c_int) function pysolvers_dsolve(rows, systems, lower, diag, upper, rhs, x) bind(c)
      import
      integer(c_int64_t), value :: rows, systems
      real(c_double), intent(in) :: lower(rows, *), diag(rows, *), upper(rows, *)
      real(c_double), intent(in) :: rhs(rows, *)
      real(c_double), intent(inout) :: x(rows, *)
    end function

    integer(c_int) function pysolvers_csolve(rows, systems, lower, diag, upper, rhs, x) bind(c)
      import
      integer(c_int64_t), value :: rows, systems
      complex(c_float_complex), intent(in) :: lower(rows, *), diag(rows, *), upper(rows, *)
      complex(c_float_complex), intent(in) :: rhs(rows, *)
      complex(c_float_complex), intent(inout) :: x(rows, *)
    end function

    integer(c_int) function pysolvers_zsolve(rows, systems, lower, diag, upper, rhs, x) bind(c)
      import
      integer(c_int64_t), value :: rows, systems
      complex(c_double_complex), intent(in) :: lower(rows, *), diag(rows, *), upper(rows, *)
      complex(c_double_complex), intent(in) :: rhs(rows, *)
      complex(c_double_complex), intent(inout) :: x(rows, *)
    end function

    type(c_ptr) function status_text(status) bind(c, name="pysolvers_status_text")
      import
      integer(c_int), value :: status
    end function

    integer(c_size_t) function length_of(text) bind(c, name="strlen")
      import
      type(c_ptr), value :: text
    end function
  end interface

contains

  ! What a status means.
  function pysolvers_status_text(status) result(text)
    integer(c_int), intent(in) :: status
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    type(c_ptr) :: found
    integer :: i

    found = status_text(status)
    call c_f_pointer(found, letters, [length_of(found)])
    allocate (character(len=size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function
end module
